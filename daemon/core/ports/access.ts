/** Storage for operators and sessions. Management requests are not frequent, so each reads what it needs: a change takes effect at once on all instances. */
import type { AuditActor, Ceilings, FrontEnd, Role } from '../../api/vocabulary.js';
import type { Revocation, Token } from '../token.js';
import type { PageOf, PageRequest } from './common.js';

/** What an operator may do, and where. */
export interface Grants {
  role: Role;
  /** IDs; null: all projects, also future ones. */
  projects: string[] | null;
  /** For the tokens that it issues; null: none. */
  ceilings: Ceilings | null;
}

export interface Operator extends Grants {
  id: string;
  /** Never changes: the audit log and `issued_by` have it. */
  name: string;
  isActive: boolean;
  /** When its secret ends by itself; null: never. */
  expiresAtMs: number | null;
  createdAtMs: number;
  updatedAtMs: number;
  /** To the minute. */
  lastUsedAtMs: number | null;
  /** For display: `sk-op-`, the first 4 and the last 4 characters of the secret. */
  obfuscated: string;
}

export interface NewOperator extends Operator {
  /** SHA-256 of the secret, in hex. */
  digest: string;
}

/** The front ends that people log in to. */
export type SessionFrontEnd = Exclude<FrontEnd, 'tui'>;

/** A log-in to a front end. */
export interface Session {
  id: string;
  frontEnd: SessionFrontEnd;
  /** `admin` for the holder of the management token, or else who logged in. */
  actor: Exclude<AuditActor, 'token'>;
  /** For people to read; null for the holder of the management token. */
  name: string | null;
  /** The operator who logged in, whose row says what the session may do. */
  operatorId: string | null;
  /** Of a person: what the mapping of roles gave. Null for others. */
  role: Role | null;
  projects: string[] | null;
  ceilings: Ceilings | null;
  /** SHA-256 of that mapping, in hex. */
  mapping: string | null;
  begunAtMs: number;
  /** When it ends by itself. */
  expiresAtMs: number;
  /** When it was ended; null until then. */
  endedAtMs: number | null;
}

export interface NewSession extends Session {
  /** SHA-256 of the secret, in hex; null for a session without one. */
  digest: string | null;
}

/** A session, and its operator, if it has one. */
export interface SessionRow {
  session: Session;
  operator: Operator | null;
}

export interface AccessStore {
  operator(id: string): Promise<Operator | null>;
  operatorByDigest(digest: string): Promise<Operator | null>;
  /** Newest first. */
  operators(page: PageRequest): Promise<PageOf<Operator>>;
  session(id: string): Promise<SessionRow | null>;
  sessionByDigest(digest: string): Promise<SessionRow | null>;
  /** Notes that an operator was used, if the last time is a minute ago. */
  noteUse(operatorId: string, nowMs: number): Promise<void>;
}

export type RevokedToken = Pick<Token, 'id' | 'projectId' | 'obfuscated'>;

/** The part of a management change that concerns operators and sessions. */
export interface AccessChanges {
  /** Reads the operator and locks it until the end of the transaction: it can neither be changed nor issue tokens. */
  lockOperator(id: string): Promise<Operator | null>;
  insertOperator(operator: NewOperator): Promise<void>;
  updateOperator(operator: Operator): Promise<void>;
  /** Ends the sessions of an operator that have not ended. */
  endSessionsOf(operatorId: string, nowMs: number): Promise<void>;
  /** The same for sessions of people that began with another mapping of roles. @param mapping its SHA-256; null: there is none. */
  endSessionsOfOtherMappings(mapping: string | null, nowMs: number): Promise<void>;
  /** Reads the session and locks it until the end of the transaction. */
  lockSession(id: string): Promise<Session | null>;
  /** The same for all sessions of a person, who can issue tokens in none of them. Must come first in the transaction. */
  lockSessionsOf(actor: AuditActor): Promise<Session[]>;
  insertSession(session: NewSession): Promise<void>;
  endSession(id: string, nowMs: number): Promise<void>;
  /** Deletes sessions that have expired before. */
  deleteSessionsExpiredBefore(timeMs: number): Promise<void>;
  /** Number of tokens of an issuer that are neither revoked nor expired. */
  countActiveTokensOf(issuedBy: AuditActor, nowMs: number): Promise<number>;
  /** Revokes these tokens. The issuer must be locked. */
  revokeTokensOf(issuedBy: AuditActor, nowMs: number, revocation: Revocation): Promise<RevokedToken[]>;
}
