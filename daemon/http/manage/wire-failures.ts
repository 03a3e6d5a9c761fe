/** The failures among requests, as all reports of the management API have them. */
import { type FailureCounts, failuresIn } from '../../core/failure-kind.js';

export const wireFailures = (counts: FailureCounts) => ({
  errors: failuresIn(counts),
  refused: counts.refused,
  upstream_refused: counts.upstreamRefused,
  failed: counts.failed,
  cut: counts.cut,
});
