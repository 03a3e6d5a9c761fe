import type { FreshResponse, ResponseCache } from './cache/response-cache.js';
import {
  type ResponseHead,
  entriesOf,
  type StoragePolicy,
  storagePolicyOf,
  cacheKeyOf,
  type CacheKeyParts,
  variantKeyOf,
  conditionalHeadersOf,
  mergedHeaders,
  confirmsStored,
} from './cache/caching.js';
import { HeldMemory } from './memory-limit.js';
import { ResponseCapture } from './response-capture.js';
import { fieldsOf, type FieldValues } from './cache/field-values.js';
import { type CoalescingGroup, Follower } from './cache/request-coalescing.js';
import type { CacheKey, WriteLease, FoundEntry, StoredResponse, CacheLookup } from './ports.js';
import { Refusal } from './refusal.js';
import { type Condition, satisfies, type RequestDirectives } from './cache/request-directives.js';

/** The request that uses the cache. Exactly one of `replay`, `forward` and `refuse` is called, perhaps after `wait`. */
export interface CacheClient {
  replay(fresh: FreshResponse): void;
  /** Sends the request to the upstream. */
  forward(): void;
  refuse(refusal: Refusal): void;
  /** Waits for the response to an identical request. */
  wait(): void;
  /** Other requests wait for its response, so a slow client must not slow down the upstream transfer any more. */
  stopPacing(): void;
}

export type CacheRequest = CacheKeyParts & { path: string; directives: RequestDirectives };

/** One request's use of the cache: lookup, request coalescing, revalidation, and capture of the upstream's response. */
export class CacheTransaction extends Follower {
  readonly #cache: ResponseCache;
  readonly #request: CacheRequest;
  readonly #client: CacheClient;
  readonly #cacheKey: CacheKey;
  /** Request header fields that the responses vary by, once known; they select the variant key. */
  #varyNames: readonly string[] = [];
  #writeLease: WriteLease | null = null;
  #stale: StoredResponse | null = null;
  #capture: ResponseCapture | null = null;
  #hasHead = false;
  #headAtMs = 0;
  /** When the upstream was asked (monotonic): the response ages from then on. */
  #forwardedAtMs = 0;
  /** Does not take part in request coalescing. */
  #isCoalescingOff = false;
  #hasEnded = false;
  /** Called when no other request needs the response any more. */
  onUnneeded: () => void = () => undefined;

  constructor(cache: ResponseCache, facts: CacheRequest, client: CacheClient) {
    super();
    this.#cache = cache;
    this.#request = facts;
    this.#client = client;
    this.#cacheKey = cacheKeyOf(facts);
  }

  get condition(): Condition | null {
    return this.#request.directives.condition;
  }

  begin(): void {
    const group = this.#mayCoalesce ? this.#cache.coalescing.openGroup(this.#cacheKey) : null;
    if (group) this.#follow(group);
    else this.#lookUp(this.#cacheKey, this.#request.directives.mayRead);
  }

  get #mayCoalesce(): boolean {
    const { directives } = this.#request;
    return directives.mayCoalesce && !directives.isOnlyIfCached && !this.#isCoalescingOff;
  }

  #follow(group: CoalescingGroup): void {
    this.group = group;
    group.addFollower(this);
    this.#client.wait();
    group.leader?.gainedFollower();
  }

  #lookUp(cacheKey: CacheKey, mayRead: boolean): void {
    const { directives } = this.#request;
    const lookup = this.#cache.lookUp(cacheKey, mayRead, directives.mayStore && !directives.isOnlyIfCached);
    if (lookup instanceof Promise) void lookup.then(this.#onLookup);
    else this.#onLookup(lookup);
  }

  readonly #onLookup = ({ found, writeLease }: CacheLookup) => {
    this.#writeLease = writeLease;
    if (this.#hasEnded) {
      this.#releaseLease();
    } else if (found === null) {
      this.#forward();
    } else if (found.content.kind === 'vary') {
      // A marker under a variant key was not written by us.
      if (this.#varyNames.length > 0) this.#lookUp(this.#cacheKey, false);
      else this.#lookUpVariant(found.content.names);
    } else {
      this.#onStoredResponse(found.content, found);
    }
  };

  #lookUpVariant(names: readonly string[]): void {
    this.#varyNames = names;
    this.#lookUp(variantKeyOf(this.#cacheKey, names, this.#request.fields), true);
  }

  #onStoredResponse(response: StoredResponse, { residentMs, freshMs }: FoundEntry): void {
    const { directives } = this.#request;
    const fresh = this.#cache.freshResponseOf(response, residentMs, freshMs);
    const ages = this.#cache.agesOf(fresh);
    if (satisfies(directives, response, ages)) {
      this.#releaseLease();
      this.#completeGroup(fresh);
      this.#client.replay(fresh);
      return;
    }
    this.#stale = response;
    // Fresh, but not for this client: the lookup granted no write lease.
    if (ages.freshForMs > 0 && directives.mayStore && !directives.isOnlyIfCached) this.#lookUp(this.#cacheKey, false);
    else this.#forward();
  }

  #forward(): void {
    if (this.group === null && this.#mayCoalesce) {
      // An identical request may have become the leader during the lookup.
      const group = this.#cache.coalescing.join(this.#cacheKey, this);
      if (group && group.leader !== this) {
        this.#releaseLease();
        this.#follow(group);
        return;
      }
      this.group = group;
    }
    this.#cache.misses += 1;
    this.#forwardedAtMs = this.#cache.monotonic();
    if (this.#request.directives.isOnlyIfCached) this.#client.refuse(new Refusal('not_cached', 'not in cache'));
    else this.#client.forward();
  }

  /** Passes the response on to the followers whose variant it is. */
  #completeGroup(fresh: FreshResponse): void {
    const { group } = this;
    this.group = null;
    for (const follower of group?.complete() ?? [])
      (follower as CacheTransaction).#receive(fresh, this.#varyNames, this.#request.fields);
  }

  #receive(fresh: FreshResponse, names: readonly string[], fields: FieldValues): void {
    const variantOf = (values: FieldValues) => variantKeyOf(this.#cacheKey, names, values).variant;
    const isSameVariant = variantOf(fields) === variantOf(this.#request.fields);
    if (isSameVariant && satisfies(this.#request.directives, fresh.response, this.#cache.agesOf(fresh))) {
      this.#client.replay(fresh);
      return;
    }
    this.#isCoalescingOff = true;
    this.#lookUp(this.#cacheKey, true);
  }

  override lead(): void {
    if (!this.#hasEnded) this.#lookUp(this.#cacheKey, true);
  }

  override gainedFollower(): void {
    if (this.#capture !== null) this.#client.stopPacing();
  }

  override lostFollower(): void {
    if (!this.isNeededByOthers) this.onUnneeded();
  }

  override proceedAlone(): void {
    super.proceedAlone();
    this.#isCoalescingOff = true;
    this.#forward();
  }

  /** The wait timed out: asks the upstream itself. */
  stopWaiting(): void {
    if (this.#isLeading) this.group?.handOver();
    else this.group?.removeFollower(this);
    this.proceedAlone();
  }

  get #isLeading(): boolean {
    return this.group?.leader === this;
  }

  /** The request has ended, or fails for a reason of its own (such as a revoked token): its followers need another leader. */
  quit(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#releaseLease();
    this.#releaseCapture();
    const { group } = this;
    if (this.#isLeading) group?.handOver();
    else group?.removeFollower(this);
    this.group = null;
  }

  // ---- the upstream's response

  /** Header fields to add to the upstream request to revalidate the stored response; alternating names and values. */
  get conditionalHeaders(): readonly string[] {
    const { directives, method } = this.#request;
    return this.#stale !== null && this.#writeLease !== null && directives.condition === null && method === 'GET'
      ? conditionalHeadersOf(this.#stale)
      : [];
  }

  /** Whether the response may be stored, or other requests wait for it. */
  get isResponseNeeded(): boolean {
    return this.#writeLease !== null || this.#isLeading;
  }

  /** Whether the response is still needed if the client disconnects: it is being captured, or followers wait for its head. */
  get isNeededByOthers(): boolean {
    return !this.#hasEnded && (this.#capture !== null || (!this.#hasHead && this.#hasFollowers));
  }

  get #hasFollowers(): boolean {
    return this.#isLeading && this.group?.hasFollowers === true;
  }

  /** Whether followers wait for each chunk, so that a slow client must not delay them. */
  get hasWaitingFollowers(): boolean {
    return this.#capture !== null && this.#hasFollowers;
  }

  /**
   * Called when the response head has arrived.
   *
   * @param headers headers that may be stored; alternating names and values.
   * @returns the stored response to send instead, if a 304 confirmed it.
   */
  onResponseHead(head: ResponseHead, headers: readonly string[]): StoredResponse | null {
    this.#hasHead = true;
    this.#headAtMs = this.#cache.monotonic();
    const { method, projectId, target } = this.#request;
    // Even if the client has disconnected.
    if (method === 'POST' && head.status < 400) void this.#cache.invalidateTarget(projectId, target);
    const isConditional = this.conditionalHeaders.length > 0 || this.#request.directives.condition !== null;
    if (head.status === 304 && isConditional && this.#stale) return this.#revalidated(this.#stale, head, headers);
    const policy = this.#storagePolicyOf(head);
    if (!policy) {
      this.#abandon();
      return null;
    }
    this.#varyNames = policy.vary;
    const memory = new HeldMemory(this.#cache.memory, () => {
      this.#abandon(); // Only the copy goes: the client still gets the response.
    });
    this.#capture = new ResponseCapture(memory, { status: head.status, headers }, policy);
    // Followers get a response only when it is complete, which defeats streaming.
    if (/^text\/event-stream\b/i.test(head.fields.get('content-type') ?? '')) this.#dissolveGroup();
    return null;
  }

  #storagePolicyOf(head: ResponseHead): StoragePolicy | null {
    const { method, path, directives } = this.#request;
    if (this.#writeLease === null && !this.#hasFollowers) return null;
    return storagePolicyOf(
      { method, path, isOptedIn: directives.isOptedIn },
      head,
      this.#cache.settings,
      this.#cache.now(),
    );
  }

  #revalidated(stale: StoredResponse, head: ResponseHead, headers: readonly string[]): StoredResponse | null {
    const { condition } = this.#request.directives;
    if (condition !== null && !confirmsStored(condition, head.fields, stale)) {
      this.#abandon();
      return null;
    }
    const merged = mergedHeaders(stale.headers, headers);
    const fields = new Map([...fieldsOf(merged), ...head.fields]);
    const policy = this.#storagePolicyOf({ status: stale.status, fields, isFramed: true });
    const { ageMs, isForOptedIn } = policy ?? stale;
    const response: StoredResponse = { ...stale, headers: merged, ageMs, isForOptedIn };
    if (policy) this.#store(response, policy);
    else this.#abandon();
    return condition === null ? response : null;
  }

  onChunk(bytes: Buffer): void {
    const maxBytes = this.#cache.settings.httpCacheMaxObjectBytes;
    if (this.#capture?.add(bytes, maxBytes) === false) this.#abandon();
  }

  /** The response arrived completely. */
  onComplete(): void {
    const capture = this.#capture;
    if (!capture) return;
    const response = capture.storedResponse();
    this.#releaseCapture();
    const { method, projectId } = this.#request;
    // Only a request that runs a model may end like this.
    if (method === 'POST' && this.#cache.reportsError(projectId, response)) this.#abandon();
    else this.#store(response, capture.policy);
  }

  /** The response will not arrive, or was truncated. */
  onFailure(): void {
    this.#abandon();
  }

  #store(received: StoredResponse, statedPolicy: StoragePolicy): void {
    const { response, policy } = this.#withResponseDelay(received, statedPolicy);
    const writeLease = this.#writeLease;
    this.#writeLease = null;
    this.#hasEnded = true;
    this.#varyNames = policy.vary;
    const fresh = this.#cache.freshResponseOf(response, 0, policy.freshMs);
    const stored = writeLease?.store(entriesOf(this.#cacheKey, this.#request.fields, policy, response)) ?? true;
    const distribute = (isStored: boolean) => {
      // Outdated by a change or purge that some followers may already have seen.
      if (!isStored) this.group?.restart();
      else if (policy.freshMs > 0) this.#completeGroup(fresh);
      else this.#dissolveGroup();
      this.group = null;
    };
    if (stored instanceof Promise) void stored.then(distribute);
    else distribute(stored);
  }

  /** Adds the response delay to the age (RFC 9111, 4.2.3), until the response is complete. */
  #withResponseDelay(
    received: StoredResponse,
    statedPolicy: StoragePolicy,
  ): { response: StoredResponse; policy: StoragePolicy } {
    const { ageMs: statedAgeMs, apparentAgeMs, freshMs: freshAtHeadMs, usesDefaultLifetime } = statedPolicy;
    const nowMs = this.#cache.monotonic();
    const ageMs = Math.max(statedAgeMs + nowMs - this.#forwardedAtMs, apparentAgeMs + nowMs - this.#headAtMs);
    // A default lifetime starts now, however long the upstream took to respond.
    const olderMs = usesDefaultLifetime ? 0 : ageMs - Math.max(statedAgeMs, apparentAgeMs);
    const freshMs = Math.max(0, freshAtHeadMs - olderMs);
    return {
      response: { ...received, ageMs },
      policy: { ...statedPolicy, freshMs, keepMs: statedPolicy.keepMs - freshAtHeadMs + freshMs },
    };
  }

  #abandon(): void {
    this.#releaseLease();
    this.#releaseCapture();
    this.#dissolveGroup();
  }

  #dissolveGroup(): void {
    if (!this.#isLeading) return;
    const { group } = this;
    this.group = null;
    group?.dissolve(true);
  }

  #releaseLease(): void {
    this.#writeLease?.release();
    this.#writeLease = null;
  }

  #releaseCapture(): void {
    this.#capture?.release();
    this.#capture = null;
  }
}
