/**
 * # Single flight
 *
 * Of identical requests that nothing kept can answer only one, the leader, goes to the upstream; the others follow it and are
 * answered with what it gets. Nobody fails by his leader: one that is refused, revoked or gone is replaced by the first that
 * follows it, and as soon as it is seen that its answer is not for others (it fails, is a stream, or will not be
 * kept) all are let go to ask for themselves. For a while others like them then do not join in the first place.
 */
import { hash } from 'node:crypto';
import { placeText, resourceText } from './caching.js';
import { InFlight, Member } from '../in-flight.js';
import type { CachePlace, CacheSelection, Clock } from '../ports.js';

/** One who waits for another's answer. */
export abstract class Follower extends Member {
  /** Go on as the leader of those who follow now. */
  abstract lead(): void;
  /** Another one waits for its answer. */
  abstract followed(): void;
  /** Nobody will bring the answer: ask alone. */
  letGo(): void {
    this.flight = null;
  }
  /** The one it leads or follows. */
  flight: Flight | null = null;
}

const SKIPS_FOR_MS = 10_000;
// About 200 bytes each.
const MOST_SKIPS = 10_000;

/** A key of bounded size: the text of a place holds the header fields of a request, up to 40 KB of them. */
const skipKey = (place: CachePlace) => hash('sha256', placeText(place), 'base64');

export class Flights {
  readonly #clock: Clock;
  /** By resource, then by variant: what a write closes is all of a resource. */
  readonly #open = new Map<string, Map<string, Flight>>();
  /** Until when (monotonic) requests for a place go alone; the oldest first. */
  readonly #skips = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns the one to follow, if there is one. */
  openAt(place: CachePlace): Flight | null {
    if (this.#open.size === 0) return null;
    return this.#open.get(resourceText(place))?.get(place.variant) ?? null;
  }

  /** @returns the flight to follow, or one to lead that was begun for it; null when each is to go alone. */
  board(place: CachePlace, who: Follower): Flight | null {
    const resource = resourceText(place);
    const ofResource = this.#open.get(resource);
    const open = ofResource?.get(place.variant);
    if (open) return open;
    if (this.#isSkipped(place)) return null;
    const flight = new Flight(this, place, who);
    if (ofResource) ofResource.set(place.variant, flight);
    else this.#open.set(resource, new Map([[place.variant, flight]]));
    return flight;
  }

  /** Nobody joins it any more. */
  close({ place }: Flight): void {
    const resource = resourceText(place);
    const ofResource = this.#open.get(resource);
    ofResource?.delete(place.variant);
    if (ofResource?.size === 0) this.#open.delete(resource);
  }

  /** What was changed must not be answered by what was asked before. */
  closeResource(projectId: string, resource: string): void {
    if (this.#open.size === 0) return;
    const key = resourceText({ projectId, resource });
    for (const flight of this.#open.get(key)?.values() ?? []) flight.isOpen = false;
    this.#open.delete(key);
  }

  closeSelected(selection: CacheSelection): void {
    for (const ofResource of [...this.#open.values()]) {
      for (const flight of [...ofResource.values()]) if (isSelected(flight.place, selection)) flight.close();
    }
  }

  skip(place: CachePlace): void {
    const nowMs = this.#clock.monotonic();
    for (const [key, until] of this.#skips) {
      // To forget one early costs a request that waits for headers in vain.
      if (until > nowMs && this.#skips.size < MOST_SKIPS) break;
      this.#skips.delete(key);
    }
    const key = skipKey(place);
    this.#skips.delete(key); // Set again, it is the youngest.
    this.#skips.set(key, nowMs + SKIPS_FOR_MS);
  }

  #isSkipped(place: CachePlace): boolean {
    if (this.#skips.size === 0) return false;
    const until = this.#skips.get(skipKey(place));
    return until !== undefined && this.#clock.monotonic() < until;
  }
}

export class Flight {
  readonly #flights: Flights;
  readonly place: CachePlace;
  /** Whose answer the others wait for; null when there is none any more. */
  leader: Follower | null;
  readonly #followers = new InFlight<Follower>();
  isOpen = true;
  #restarts = 0;

  constructor(flights: Flights, place: CachePlace, leader: Follower | null) {
    this.#flights = flights;
    this.place = place;
    this.leader = leader;
  }

  get hasFollowers(): boolean {
    return this.#followers.size > 0;
  }

  join(follower: Follower): void {
    this.#followers.add(follower);
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
  }

  close(): void {
    if (this.isOpen) this.#flights.close(this);
    this.isOpen = false;
  }

  /** The answer is there: all who follow are handed out, to be answered with it. */
  land(): Follower[] {
    this.close();
    const followers = this.#followers.all();
    for (const follower of followers) {
      this.#followers.delete(follower);
      follower.flight = null;
    }
    return followers;
  }

  /** All go alone. @param skips whether others like them shall do so too for a while. */
  scatter(skips: boolean): void {
    if (skips) this.#flights.skip(this.place);
    for (const follower of this.land()) follower.letGo();
  }

  /** Another one leads. */
  handOver(): void {
    const [next] = this.#followers.all();
    this.leader = next ?? null;
    if (!next) {
      this.close();
      return;
    }
    this.#followers.delete(next);
    // Not from within: where each is refused in its turn the stack would grow with their number.
    queueMicrotask(() => {
      next.lead();
    });
  }

  /** What the leader got is too old: another one leads, once. With a resource that changes all the time there would be no end to it. */
  restart(): void {
    this.#restarts += 1;
    if (this.#restarts > 1) this.scatter(false);
    else this.handOver();
  }
}

export function isSelected({ projectId, resource }: CachePlace, selection: CacheSelection): boolean {
  switch (selection.kind) {
    case 'all':
      return true;
    case 'project':
      return projectId === selection.projectId;
    case 'resource':
      return resource === selection.resource;
  }
}
