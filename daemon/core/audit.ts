import { randomUUID } from 'node:crypto';
import type { AuditAction, AuditActor, AuditOutcome } from '../api/vocabulary.js';
import { withoutSecrets } from './masking.js';

/** The actor and request of a change, recorded in every audit record. */
export interface Caller {
  actor: Exclude<AuditActor, 'token'>;
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
}

/** Audit record. It never contains a secret: tokens appear by ID and in obfuscated form. */
export interface AuditRecord {
  id: string;
  timeMs: number;
  action: AuditAction;
  actor: AuditActor;
  outcome: AuditOutcome;
  projectId: string | null;
  tokenId: string | null;
  obfuscated: string | null;
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
  count: number | null;
  details: Record<string, unknown> | null;
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
    details: null,
    ...subject,
    ...caller,
    // An operator may paste the secret ("leaked: sk-wt-…"), and audit records are permanent.
    reason: caller.reason && withoutSecrets(caller.reason),
    id: randomUUID(),
    timeMs,
    outcome,
  };
}
