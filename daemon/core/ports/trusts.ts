/** Storage for trusts, and for the JWTs that were exchanged. */
import type { AuditActor, Policies } from '../../api/vocabulary.js';
import type { PageOf, PageRequest } from './common.js';

/** What exchanges JWTs of an issuer for tokens of a project. */
export interface Trust extends Policies {
  id: string;
  /** The `iss` of the JWTs. */
  issuer: string;
  /** Their `aud`. */
  audience: string;
  /** Claims with their values, in which `*` stands for any text. */
  match: Readonly<Record<string, string>>;
  /** A name in JWKS_DIR; null: the issuer publishes its keys. */
  jwksFile: string | null;
  projectId: string;
  /** Of the tokens. `{claim}` stands for a claim of the JWT. */
  name: string;
  /** Lifetime of the tokens. */
  durationMinutes: number;
  /** Cap of the tokens; 0: none. */
  maxRequests: number;
  /** Maximum number of tokens that are active at the same time; null: no maximum. */
  maxActive: number | null;
  /** Maximum number of tokens in an hour; null: no maximum. */
  perHour: number | null;
  isActive: boolean;
  createdAtMs: number;
  updatedAtMs: number;
}

/** For display. */
export interface ShownTrust extends Trust {
  projectName: string;
}

export interface TrustStore {
  one(id: string): Promise<ShownTrust | null>;
  /** The newest first. */
  list(page: PageRequest): Promise<PageOf<ShownTrust>>;
  /** Audiences and places of keys that the active trusts of an issuer have, each pair once. */
  sourcesOf(issuer: string): Promise<Pick<Trust, 'audience' | 'jwksFile'>[]>;
  /** The active trusts of an issuer for an audience. */
  activeOf(issuer: string, audience: string): Promise<Trust[]>;
  /** Removes up to `limit` entries of JWTs that ended before a time. */
  removeUsedJwts(beforeMs: number, limit: number): Promise<void>;
}

/** In the transaction of a change. */
export interface TrustChanges {
  /** Number of the trusts of an issuer. */
  countOf(issuer: string): Promise<number>;
  insert(trust: Trust): Promise<void>;
  /** Reads the trust and locks it until the end of the transaction. */
  lock(id: string): Promise<ShownTrust | null>;
  update(trust: Trust): Promise<void>;
  delete(id: string): Promise<void>;
  /**
   * Notes that a JWT is used. The trust must be locked, so that two exchanges of the same JWT wait for each other.
   *
   * @param digest SHA-256 in hex of what identifies it.
   * @returns false if it was used before. @throws {StoreConflict} if it was used for another trust at the same time.
   */
  useJwt(digest: string, untilMs: number): Promise<boolean>;
  /**
   * Whether `most` active tokens have this issuer. What makes tokens of it must be locked.
   *
   * @returns when there will be fewer because some of them expire; null if there are fewer.
   */
  fullUntil(issuedBy: AuditActor, most: number, nowMs: number): Promise<number | null>;
  /** Whether `most` tokens of this issuer were made since a time. @returns when the first of the last `most` was made; null if fewer were. */
  firstOfLast(issuedBy: AuditActor, most: number, sinceMs: number): Promise<number | null>;
}
