import { randomUUID } from 'node:crypto';
import type { AuditAction, AuditActor, AuditOutcome } from '../api/vocabulary.js';
import { withoutSecrets } from './masking.js';

/** Who acts, and in which request: what every audit record says beside the change itself. */
export interface Caller {
  actor: Exclude<AuditActor, 'token'>;
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
}

/** One line of the audit log. It never holds a secret: tokens appear by id and in their obfuscated form. */
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
    // "leaked: sk-wt-…" is a reason to revoke, and would keep the secret for ever.
    reason: caller.reason && withoutSecrets(caller.reason),
    id: randomUUID(),
    timeMs,
    outcome,
  };
}
