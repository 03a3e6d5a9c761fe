/** Who caused the failure of a request, for the counts of failures by kind. */
import type { RequestEnded } from './events.js';

/** `refused`: refusals and failures of llmp itself; `cut`: ended by a revocation after it was forwarded, or during a cache hit. */
export const FAILURE_KINDS = ['refused', 'upstreamRefused', 'upstreamErrors', 'cut'] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

type Ended = Pick<RequestEnded, 'outcome' | 'code' | 'isForwarded' | 'cache' | 'status'>;

/** Whether a revocation ended it after it had begun. A WebSocket is no use while no response is under way. */
export const wasCut = ({ outcome, isForwarded, cache, status }: Ended): boolean =>
  outcome === 'revoked' && (isForwarded || cache === 'hit' || status === 101);

/** Null for a request that did not fail, or that its client gave up. The SQL in daemon/store/sql/top.ts has the same rules. */
export function failureKindOf(ended: Ended): FailureKind | null {
  const { outcome, code } = ended;
  switch (outcome) {
    case 'refused':
    case 'drained':
      return 'refused';
    case 'revoked':
      return wasCut(ended) ? 'cut' : 'refused';
    case 'upstream_refused':
      return 'upstreamRefused';
    case 'upstream_error':
      return code === 'internal' ? 'refused' : 'upstreamErrors';
    case 'timeout':
      return code === 'request_timeout' ? 'refused' : 'upstreamErrors';
    case 'provider_error':
    case 'truncated':
      return 'upstreamErrors';
    default:
      return null;
  }
}
