/** Which kind of failure a request is, for all counts. */
import { type FailureKind, KINDS_OF_OUTCOMES, REQUEST_OUTCOMES, type RequestOutcome } from '../api/vocabulary.js';
import type { RequestEnded } from './events.js';

type Ended = Pick<RequestEnded, 'outcome' | 'isForwarded' | 'cache' | 'status'>;

/** Whether a revocation ended it after it had begun. A WebSocket is no use while no response is under way. */
export const wasCut = ({ outcome, isForwarded, cache, status }: Ended): boolean =>
  outcome === 'revoked' && (isForwarded || cache === 'hit' || status === 101);

/** Null for a request that did not fail. */
export function failureKindOf(ended: Ended): FailureKind | null {
  const kind = KINDS_OF_OUTCOMES[ended.outcome];
  return kind === 'cut' && !wasCut(ended) ? 'refused' : kind;
}

/** Outcomes of which all requests are refused, except for those that were cut. */
export const REFUSED_OUTCOMES = outcomesOf('refused', 'cut');
/** Outcomes of which all requests failed. */
export const BROKEN_OUTCOMES = outcomesOf('failed');

/** The failures among requests, by kind. */
export interface FailureCounts {
  refused: number;
  upstreamRefused: number;
  failed: number;
  cut: number;
}

export const failuresIn = ({ refused, upstreamRefused, failed, cut }: FailureCounts): number =>
  refused + upstreamRefused + failed + cut;

function outcomesOf(...kinds: readonly FailureKind[]): readonly RequestOutcome[] {
  return REQUEST_OUTCOMES.filter((outcome) => kinds.some((kind) => KINDS_OF_OUTCOMES[outcome] === kind));
}
