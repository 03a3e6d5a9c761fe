/** Who refused a request or cut it, and why: for operators who look for the cause of a failure. */
import type { WireRequestEvent, WireTokenState } from './contract.js';

type Ended = Pick<WireRequestEvent, 'outcome' | 'code' | 'error' | 'status'>;

/** Who is responsible for a failure; `cut`: a response that had begun was not completed. Empty for a success. */
export type Refuser = 'llmp' | 'provider' | 'client' | 'cut' | '';

export function refuserOf({ outcome, code }: Pick<Ended, 'outcome' | 'code'>): Refuser {
  switch (outcome) {
    case 'refused':
      return 'llmp';
    case 'upstream_refused':
    case 'provider_error':
      return 'provider';
    case 'upstream_error':
      return code === 'internal' ? 'llmp' : 'provider';
    case 'timeout':
      return code === 'request_timeout' ? 'client' : 'provider';
    case 'client_closed':
      return 'client';
    case 'truncated':
    case 'revoked':
    case 'drained':
      return 'cut';
    default:
      return '';
  }
}

/** Why a request failed, in a sentence; null for a success. */
export function whyFailed({ outcome, error, status }: Ended): string | null {
  if (error !== null) return error;
  switch (outcome) {
    case 'upstream_refused':
    case 'upstream_error':
      return `the provider responded with ${status}`;
    case 'provider_error':
      return 'the provider reported an error within its response';
    case 'client_closed':
      return 'the client disconnected before it had the whole response';
    case 'timeout':
      return 'the provider stopped sending in the middle of its response';
    case 'truncated':
      return "the provider's response broke off";
    case 'revoked':
      return 'the token was revoked, or its project deactivated, during the response';
    case 'drained':
      return 'the daemon stopped during the response';
    default:
      return null;
  }
}

/** The cause of a failure for a list, such as `cap spent`, and what the operator can do about it. */
export interface Cause {
  why: string;
  remedy?: string;
}

/** By the codes of llmp. Other codes of llmp speak for themselves. */
const CAUSES: ReadonlyMap<string, Cause> = new Map(
  Object.entries<Cause>({
    unauthorized: {
      why: 'unknown token',
      remedy: 'the client sent no token, or one that was never issued here: look at what it is configured with',
    },
    credential_in_query: { why: 'token in the URL', remedy: 'the client has to send it in a header' },
    request_limit_reached: { why: 'cap spent', remedy: 'issue another token, because a cap cannot be changed' },
    rate_limited: { why: 'rate limit', remedy: 'if the requests are wanted, raise the rate limits in the settings' },
    project_inactive: { why: 'project off', remedy: 'activate the project' },
    unavailable: { why: 'llmp unavailable', remedy: 'run `llmp doctor`' },
    internal: { why: 'error in llmp', remedy: 'look for the ID of the request in the log of the daemon' },
    not_cached: { why: 'not cached', remedy: 'the client asked for a stored response only' },
    loop_detected: { why: 'loop', remedy: 'correct the base URL of the project, which leads back to llmp' },
    upstream_key_rejected: { why: 'key refused', remedy: 'give the project a key that its provider accepts' },
    upstream_unreachable: { why: 'provider unreachable', remedy: 'check the base URL of the project, and the network' },
    upstream_timeout: { why: 'provider timed out' },
    upstream_malformed: { why: 'malformed response', remedy: 'check that the base URL is that of a provider' },
  }),
);

const EXPIRED: Cause = { why: 'expired', remedy: 'issue the token again, because its expiry cannot be changed' };
const REVOKED: Cause = { why: 'revoked', remedy: 'reactivate the token, or issue another one' };

const PROVIDER_LIMIT: Cause = {
  why: 'provider rate limit',
  remedy: "the limit is that of the project's key: send less, or have the provider raise it",
};
const PROVIDER_REFUSED: Cause = { why: 'provider refused', remedy: 'the response to the client says why' };

const OF_STATES: Readonly<Record<WireTokenState, Cause | undefined>> = {
  active: undefined,
  expired: EXPIRED,
  revoked: REVOKED,
  rate_limited: CAUSES.get('request_limit_reached'),
  project_inactive: CAUSES.get('project_inactive'),
};

/** Why llmp refuses the requests of a token in this state; null if it does not. */
export const causeOfState = (state: WireTokenState): Cause | null => OF_STATES[state] ?? null;

/** Causes that do not depend on the request, for completion: a part of one selects by it. */
export const COMMON_CAUSES = [REVOKED, EXPIRED, ...CAUSES.values(), PROVIDER_LIMIT, PROVIDER_REFUSED].map(
  ({ why }) => why,
);

/** Why a request failed, in two or three words, with a remedy if there is one; null for a success. */
export function causeOf({ outcome, code, error, status }: Ended): Cause | null {
  // The known holder of a secret that is no longer valid. The code is that of unknown tokens, for the client.
  if (code === 'unauthorized' && error?.endsWith(' is expired')) return EXPIRED;
  if (code === 'unauthorized' && error?.endsWith(' is revoked')) return REVOKED;
  const coded = code ? (CAUSES.get(code) ?? { why: code.replaceAll('_', ' ') }) : null;
  switch (outcome) {
    case 'ok':
      return null;
    case 'provider_error':
      // A word of the provider, as it is.
      return { why: code ?? 'provider error', remedy: 'the provider reported it within its response' };
    case 'upstream_refused':
      return status === 429 ? PROVIDER_LIMIT : PROVIDER_REFUSED;
    case 'upstream_error':
      return coded ?? { why: 'provider error' };
    case 'client_closed':
      return { why: 'client left' };
    case 'timeout':
      return coded ?? { why: 'provider timed out' };
    case 'truncated':
      return { why: 'response broke off' };
    case 'revoked':
      return { ...REVOKED, why: 'revoked meanwhile' };
    case 'drained':
      return { why: 'daemon stopped' };
    default:
      return coded ?? { why: outcome };
  }
}
