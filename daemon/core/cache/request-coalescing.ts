/**
 * # Request coalescing
 *
 * Of identical requests that miss the cache, only one, the leader, is sent to the upstream; its followers wait and get the same
 * response. A follower never fails because of its leader: if the leader is refused, revoked or disconnects, the first follower
 * replaces it. As soon as the response turns out not to be shareable (it fails, is a stream, or may not be stored), the group is
 * dissolved and each follower asks the upstream itself. For 10 s, identical requests are then not coalesced.
 */
import { hash } from 'node:crypto';
import { cacheKeyText, resourceKeyText } from './caching.js';
import { LinkedSet, LinkedSetMember } from '../linked-set.js';
import type { CacheKey, CacheSelection, Clock } from '../ports.js';

/** Request in a coalescing group: a follower waits for the leader's response. */
export abstract class Follower extends LinkedSetMember {
  /** Becomes the leader of the remaining followers. */
  abstract lead(): void;
  /** Called when another request begins to wait for this one's response. */
  abstract gainedFollower(): void;
  /** Called when a request no longer waits for this one's response. */
  abstract lostFollower(): void;
  /** The group brings no response: asks the upstream itself. */
  proceedAlone(): void {
    this.group = null;
  }
  /** The group that it leads or follows. */
  group: CoalescingGroup | null = null;
}

const SUSPENDED_FOR_MS = 10_000;
// About 200 bytes each.
const MAX_SUSPENDED = 10_000;

/** A key of bounded size: the text of a cache key contains up to 40 KB of request header fields. */
const suspensionKey = (cacheKey: CacheKey) => hash('sha256', cacheKeyText(cacheKey), 'base64');

/** The open coalescing groups of this instance, by cache key. */
export class RequestCoalescing {
  readonly #clock: Clock;
  /** By resource, then by variant, because an invalidation closes all groups of a resource. */
  readonly #openGroups = new Map<string, Map<string, CoalescingGroup>>();
  /** Until when (monotonic) requests with a cache key are not coalesced; oldest first. */
  readonly #suspendedUntil = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns the group to follow, if any. */
  openGroup(cacheKey: CacheKey): CoalescingGroup | null {
    if (this.#openGroups.size === 0) return null;
    return this.#openGroups.get(resourceKeyText(cacheKey))?.get(cacheKey.variant) ?? null;
  }

  /** @returns the existing group to follow, or a new one to lead; null while requests with this key are not coalesced. */
  join(cacheKey: CacheKey, request: Follower): CoalescingGroup | null {
    const resource = resourceKeyText(cacheKey);
    const ofResource = this.#openGroups.get(resource);
    const existing = ofResource?.get(cacheKey.variant);
    if (existing) return existing;
    if (this.#isSuspended(cacheKey)) return null;
    const group = new CoalescingGroup(this, cacheKey, request);
    if (ofResource) ofResource.set(cacheKey.variant, group);
    else this.#openGroups.set(resource, new Map([[cacheKey.variant, group]]));
    return group;
  }

  /** No more requests may join this group. */
  close({ cacheKey }: CoalescingGroup): void {
    const resource = resourceKeyText(cacheKey);
    const ofResource = this.#openGroups.get(resource);
    ofResource?.delete(cacheKey.variant);
    if (ofResource?.size === 0) this.#openGroups.delete(resource);
  }

  /** The resource was changed: later requests must not get a response that was requested before the change. */
  closeResource(projectId: string, resource: string): void {
    if (this.#openGroups.size === 0) return;
    const key = resourceKeyText({ projectId, resource });
    for (const group of this.#openGroups.get(key)?.values() ?? []) group.isOpen = false;
    this.#openGroups.delete(key);
  }

  closeSelected(selection: CacheSelection): void {
    for (const ofResource of [...this.#openGroups.values()]) {
      for (const group of [...ofResource.values()]) if (isSelected(group.cacheKey, selection)) group.close();
    }
  }

  suspend(cacheKey: CacheKey): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, until] of this.#suspendedUntil) {
      // If an entry is dropped early, one request waits in vain for the leader's response headers.
      if (until > nowMs && this.#suspendedUntil.size < MAX_SUSPENDED) break;
      this.#suspendedUntil.delete(key);
    }
    const key = suspensionKey(cacheKey);
    this.#suspendedUntil.delete(key); // Re-inserted below, so that it becomes the newest.
    this.#suspendedUntil.set(key, nowMs + SUSPENDED_FOR_MS);
  }

  #isSuspended(cacheKey: CacheKey): boolean {
    if (this.#suspendedUntil.size === 0) return false;
    const until = this.#suspendedUntil.get(suspensionKey(cacheKey));
    return until !== undefined && this.#clock.monotonic() < until;
  }
}

/** Identical requests in flight: a leader that asks the upstream, and followers that wait for its response. */
export class CoalescingGroup {
  readonly #coalescing: RequestCoalescing;
  readonly cacheKey: CacheKey;
  /** The request whose response the others wait for; null when none is left. */
  leader: Follower | null;
  readonly #followers = new LinkedSet<Follower>();
  isOpen = true;
  #restarts = 0;

  constructor(coalescing: RequestCoalescing, cacheKey: CacheKey, leader: Follower | null) {
    this.#coalescing = coalescing;
    this.cacheKey = cacheKey;
    this.leader = leader;
  }

  get hasFollowers(): boolean {
    return this.#followers.size > 0;
  }

  addFollower(follower: Follower): void {
    this.#followers.add(follower);
  }

  removeFollower(follower: Follower): void {
    this.#followers.delete(follower);
    this.leader?.lostFollower();
  }

  close(): void {
    if (this.isOpen) this.#coalescing.close(this);
    this.isOpen = false;
  }

  /** Closes the group. @returns its followers, which no longer belong to it. */
  complete(): Follower[] {
    this.close();
    const followers = this.#followers.all();
    for (const follower of followers) {
      this.#followers.delete(follower);
      follower.group = null;
    }
    return followers;
  }

  /** Each follower asks the upstream itself. @param suspends whether coalescing is also suspended for this key. */
  dissolve(suspends: boolean): void {
    if (suspends) this.#coalescing.suspend(this.cacheKey);
    for (const follower of this.complete()) follower.proceedAlone();
  }

  /** Makes the first follower the leader. */
  handOver(): void {
    const [next] = this.#followers.all();
    this.leader = next ?? null;
    if (!next) {
      this.close();
      return;
    }
    this.#followers.delete(next);
    // Deferred: if each new leader is refused at once, recursion would grow with the number of followers.
    queueMicrotask(() => {
      next.lead();
    });
  }

  /** The leader's response is out of date: retries once with another leader. For a resource that changes constantly, retries would never end. */
  restart(): void {
    this.#restarts += 1;
    if (this.#restarts > 1) this.dissolve(false);
    else this.handOver();
  }
}

export function isSelected({ projectId, resource }: CacheKey, selection: CacheSelection): boolean {
  switch (selection.kind) {
    case 'all':
      return true;
    case 'project':
      return projectId === selection.projectId;
    case 'resource':
      return resource === selection.resource;
  }
}
