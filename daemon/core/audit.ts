import { randomUUID } from 'node:crypto';
import { withoutSecrets } from './masking.js';

/** Who acts, and in which request: what every audit record says beside the change itself. */
export interface Caller {
  actor: 'management' | 'admin' | 'cli' | 'tui' | 'system';
  requestId: string | null;
  clientIp: string | null;
  reason: string | null;
}

export const AUDIT_OUTCOMES = ['success', 'denied', 'error'] as const;

export type AuditAction =
  | 'project.create'
  | 'project.update'
  | 'project.delete_refused'
  | 'token.create'
  | 'token.revoke'
  | 'token.reactivate'
  | 'token.revoke_all'
  | 'cache.purge'
  | 'migrations.up'
  | 'management.denied'
  | 'admin.login'
  | 'admin.logout'
  | 'token.use';

/** One line of the audit log. It never holds a secret: tokens appear by id and in their obfuscated form. */
export interface AuditRecord {
  id: string;
  timeMs: number;
  action: AuditAction;
  actor: Caller['actor'] | 'token';
  outcome: (typeof AUDIT_OUTCOMES)[number];
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
