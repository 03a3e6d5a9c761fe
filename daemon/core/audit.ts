import { randomUUID } from 'node:crypto';
import { type AuditAction, type AuditActor, type AuditOutcome, doerOf } from '../api/vocabulary.js';
import { withoutSecrets } from './masking.js';
import type { Revocation } from './token.js';

/** The actor and request of a change, recorded in every audit record. */
export interface Caller {
  actor: AuditActor;
  /** The user of the front end, such as `ana@laptop`, as reported by it. Not verified. */
  user: string | null;
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
  /** ID that the changes of one command or dialog have in common. */
  batch: string | null;
  /** The batch that this change undoes. */
  undoOf: string | null;
}

/** For changes that nobody requested over HTTP. */
export const SYSTEM_CALLER: Caller = {
  actor: 'system',
  user: null,
  requestId: null,
  clientIp: null,
  reason: null,
  batch: null,
  undoOf: null,
};

/** Audit record. It never contains a secret: tokens appear by ID and in obfuscated form. */
export interface AuditRecord {
  id: string;
  timeMs: number;
  action: AuditAction;
  actor: AuditActor;
  /** The user of the front end, as reported by it. */
  user: string | null;
  outcome: AuditOutcome;
  projectId: string | null;
  tokenId: string | null;
  obfuscated: string | null;
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
  count: number | null;
  details: Record<string, unknown> | null;
  batch: string | null;
  undoOf: string | null;
}

/** Names of the token and the project that something is about. Null if there is none, or the token has no name. */
export interface SubjectNames {
  tokenName: string | null;
  projectName: string | null;
}

/** An audit record with the names of today: those of projects may have changed since. */
export interface NamedRecord extends AuditRecord, SubjectNames {}

export type AuditSubject = Pick<AuditRecord, 'action'> &
  Partial<Pick<AuditRecord, 'projectId' | 'tokenId' | 'obfuscated' | 'count' | 'details'>>;

/** An operator may paste a secret into the reason ("leaked: sk-wt-…"), and records are permanent. */
export const masked = (caller: Caller): Caller => ({
  ...caller,
  user: caller.user && withoutSecrets(caller.user),
  reason: caller.reason && withoutSecrets(caller.reason),
});

/** What a revocation by this caller records of it. */
export function revocationBy(caller: Caller, nowMs: number): Revocation {
  const { reason, ...who } = masked(caller);
  return { revokedAtMs: nowMs, revokedBy: doerOf(who), revokeReason: reason };
}

function maskedValue(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (Array.isArray(value)) return value.map(maskedValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, its]) => [name, maskedValue(its)]));
}

export function auditRecord(
  subject: AuditSubject,
  caller: Caller,
  outcome: AuditRecord['outcome'],
  timeMs: number,
): AuditRecord {
  return {
    projectId: null,
    tokenId: null,
    obfuscated: null,
    count: null,
    ...subject,
    // A name or an address may be a secret that was pasted into the wrong field.
    details: subject.details ? (maskedValue(subject.details) as AuditRecord['details']) : null,
    ...masked(caller),
    id: randomUUID(),
    timeMs,
    outcome,
  };
}
