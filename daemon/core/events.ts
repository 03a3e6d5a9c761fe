/** How a request ended. `ok` includes a provider's 4xx, which is the client's business. */
export type Outcome =
  'ok' | 'refused' | 'upstream_error' | 'client_closed' | 'timeout' | 'truncated' | 'revoked' | 'drained';

/** What is known of a request once it is over: one value for all who keep a record of it, so that they cannot disagree. */
export interface RequestEnded {
  requestId: string;
  projectId: string | null;
  tokenId: string | null;
  method: string;
  /** Without the query, which may hold anything. */
  path: string;
  /** The status sent, or 499 when the client left before any was. */
  status: number;
  /** The refusal's code, if it was refused. */
  code: string | null;
  outcome: Outcome;
  /** A hit was answered without asking the upstream. */
  cache: 'hit' | 'miss';
  durationMs: number;
  upstreamRequestId: string | null;
}
