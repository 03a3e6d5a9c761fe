/** Maps outcomes of requests to outcomes of audit records. */
import type { AuditRecord } from './audit.js';
import { OUTCOMES, type Outcome } from './events.js';

export { AUDIT_OUTCOMES, type AuditOutcome } from '../api/vocabulary.js';

export function auditOutcomeOf(outcome: Outcome): AuditRecord['outcome'] {
  if (outcome === 'ok') return 'success';
  return outcome === 'refused' || outcome === 'revoked' ? 'denied' : 'error';
}

/** All request outcomes that map to an audit outcome. */
export const outcomesOf = (audited: AuditRecord['outcome']): Outcome[] =>
  OUTCOMES.filter((outcome) => auditOutcomeOf(outcome) === audited);
