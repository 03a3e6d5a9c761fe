/** What the response cache asks of where answers are kept. */
import type { CacheBackend } from '../../api/vocabulary.js';

/** Where an answer has its place. The three parts together are its key; none holds a line break. */
export interface CachePlace {
  projectId: string;
  /** Method and target, such as `GET /v1/models?limit=1`: what a write or a purge names. */
  resource: string;
  /** What tells it from the other answers of the resource. */
  variant: string;
}

/** An upstream's answer, whole, and as far as it may be kept. */
export interface KeptAnswer {
  kind: 'answer';
  status: number;
  /** Names and values in turn. */
  headers: readonly string[];
  body: Buffer;
  /** How old it may have been when it arrived. */
  ageMs: number;
  /** Not for clients that did not opt in: it states no lifetime, and what they poll must not freeze. */
  isForOptedIn: boolean;
}

/** In the place of an answer: which header fields of the request the answers differ by. They stand at places of their own. */
export interface KeptVary {
  kind: 'vary';
  /** In lower case. */
  names: readonly string[];
}

export interface Kept {
  content: KeptAnswer | KeptVary;
  /** So long from when it was kept it may be used without asking the upstream. */
  freshMs: number;
  /** And so long it is kept at all: to be asked about, not to be used as it is. */
  keepMs: number;
}

export interface Found {
  content: KeptAnswer | KeptVary;
  /** Since it was kept. */
  heldMs: number;
  freshMs: number;
}

/** Permission to keep the answer to one request. It ends when its resource is removed, so that nothing older is kept behind that. */
export interface Fill {
  /** Keeps all of these or none. @returns whether it did; the cache being away is no error. */
  keep(entries: readonly { place: CachePlace; kept: Kept }[]): boolean | Promise<boolean>;
  /** Nothing will be kept. */
  drop(): void;
}

export interface LookUp {
  found: Found | null;
  /** Begun if it was wanted and nothing fresh was found. */
  fill: Fill | null;
}

export interface LookUpOptions {
  /** Whether what is kept is of interest; otherwise nothing is found. */
  reads: boolean;
  /** Whether the answer, should the upstream be asked, may be kept. */
  fills: boolean;
}

/** What a purge removes: the answers of a resource in every project, all of a project, or all. */
export type CacheSelection =
  { kind: 'resource'; resource: string } | { kind: 'project'; projectId: string } | { kind: 'all' };

export interface CacheSize {
  entries: number;
  bytes: number;
}

/**
 * Answers of upstreams. A cache that is away finds nothing and keeps nothing: no request fails for it.
 * What is shared by several instances works in the same way for all of them together.
 */
export interface CacheStore {
  readonly backend: Exclude<CacheBackend, 'off'>;
  /** At once where it can. Whoever begins a fill asks the upstream only then. */
  lookUp(place: CachePlace, options: LookUpOptions): LookUp | Promise<LookUp>;
  /** Removes a project's answers of a resource, behind the change of it. Look-ups made here from now on find none; nobody waits. */
  invalidate(projectId: string, resource: string): void;
  /**
   * Removes answers, and ends the fills of what is selected.
   *
   * @returns how many answers there were.
   * @throws {StoreUnavailable} when that cannot be said, or not done.
   */
  purge(selection: CacheSelection): Promise<number>;
  /** What `purge` would remove. @throws {StoreUnavailable} */
  count(selection: CacheSelection): Promise<number>;
  /** @throws {StoreUnavailable} */
  size(): Promise<CacheSize>;
}
