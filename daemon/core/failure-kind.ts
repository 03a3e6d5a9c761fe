/** Who caused the failure of a request, for the counts of failures by kind. */
import type { RequestEnded } from './events.js';

/** `refused`: refusals and failures of llmp itself; `cut`: ended by a revocation after it was forwarded, or during a cache hit. */
export const FAILURE_KINDS = ['refused', 'upstreamRefused', 'upstreamErrors', 'cut'] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

type Ended = Pick<RequestEnded, 'outcome' | 'code' | 'isForwarded' | 'cache'>;

/** Null for a request that did not fail, or that its client gave up. The SQL in daemon/store/sql/top.ts has the same rules. */
export function failureKindOf({ outcome, code, isForwarded, cache }: Ended): FailureKind | null {
  switch (outcome) {
    case 'refused':
    case 'drained':
      return 'refused';
    case 'revoked':
      return isForwarded || cache === 'hit' ? 'cut' : 'refused';
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
