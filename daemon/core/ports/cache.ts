/** The storage that the response cache needs. */
import type { CacheBackend } from '../../api/vocabulary.js';

/** Key of a cache entry. No part contains a line break. */
export interface CacheKey {
  projectId: string;
  /** Method and target, such as `GET /v1/models?limit=1`. Invalidation and purges name a resource. */
  resource: string;
  /** Distinguishes the responses of one resource: header fields, upstream key, body. */
  variant: string;
}

/** A complete upstream response, with the headers that may be stored. */
export interface StoredResponse {
  kind: 'answer';
  status: number;
  /** Names and values in turn. */
  headers: readonly string[];
  body: Buffer;
  /** Its age when it arrived, at most (RFC 9111, 4.2.3: corrected_age_value). */
  ageMs: number;
  /** Only for clients that opt in: the upstream gave no lifetime, and a client that polls must not get the same response repeatedly. */
  isForOptedIn: boolean;
}

/** Stored instead of a response if responses vary by request header fields (`Vary`). Each response is stored under a variant key. */
export interface VaryMarker {
  kind: 'vary';
  /** In lower case. */
  names: readonly string[];
}

export interface CacheEntry {
  content: StoredResponse | VaryMarker;
  /** For this long after it was stored, it may be used without asking the upstream. */
  freshMs: number;
  /** For this long after it was stored, it stays in the cache. Once stale it is used only after revalidation. */
  keepMs: number;
}

export interface FoundEntry {
  content: StoredResponse | VaryMarker;
  /** Time since it was stored. */
  residentMs: number;
  freshMs: number;
}

/** Permission to store the response to one request. Invalidation of its resource revokes it, so that no older response is stored afterwards. */
export interface WriteLease {
  /** Stores all entries or none. @returns whether it was still permitted; an unavailable cache is not an error. */
  store(entries: readonly { key: CacheKey; entry: CacheEntry }[]): boolean | Promise<boolean>;
  /** Gives up the lease; nothing will be stored. */
  release(): void;
}

export interface CacheLookup {
  found: FoundEntry | null;
  /** Granted if it was requested and no fresh entry was found. */
  writeLease: WriteLease | null;
}

export interface CacheLookupOptions {
  /** Whether to look for an entry; if false, none is found. */
  mayRead: boolean;
  /** Whether the upstream's response may be stored, so that a write lease is needed. */
  mayStore: boolean;
}

/** What a purge removes: one resource in all projects, one project, or everything. */
export type CacheSelection =
  { kind: 'resource'; resource: string } | { kind: 'project'; projectId: string } | { kind: 'all' };

export interface CacheSize {
  entries: number;
  bytes: number;
}

/**
 * Store of upstream responses. While it is unavailable it finds and stores nothing; no request fails because of it.
 * A store that several instances share gives the same guarantees across all of them.
 */
export interface CacheStore {
  readonly backend: Exclude<CacheBackend, 'off'>;
  /** Synchronous where possible. The caller must have the write lease before it asks the upstream. */
  lookUp(key: CacheKey, options: CacheLookupOptions): CacheLookup | Promise<CacheLookup>;
  /**
   * Removes a project's entries of a resource that was changed. Lookups on this instance find none from now on.
   *
   * @returns a promise if other processes have to remove theirs first. It never rejects.
   */
  invalidate(projectId: string, resource: string): undefined | Promise<void>;
  /**
   * Removes the selected entries and revokes their write leases.
   *
   * @returns the number of responses removed.
   * @throws {StoreUnavailable} when removal failed or its result is unknown.
   */
  purge(selection: CacheSelection): Promise<number>;
  /** Number of responses that `purge` would remove. @throws {StoreUnavailable} */
  count(selection: CacheSelection): Promise<number>;
  /** @throws {StoreUnavailable} */
  size(): Promise<CacheSize>;
}
