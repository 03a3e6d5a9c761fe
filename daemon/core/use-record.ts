/** What the use of a token is in the words of the audit log. */
import type { AuditRecord } from './audit.js';
import { OUTCOMES, type Outcome } from './events.js';

export function auditOutcomeOf(outcome: Outcome): AuditRecord['outcome'] {
  if (outcome === 'ok') return 'success';
  return outcome === 'refused' || outcome === 'revoked' ? 'denied' : 'error';
}

/** All that are this one to the audit log. */
export const outcomesOf = (audited: AuditRecord['outcome']): Outcome[] =>
  OUTCOMES.filter((outcome) => auditOutcomeOf(outcome) === audited);
