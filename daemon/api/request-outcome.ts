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
  /** Whether it concerns the whole project, whichever of its tokens is used. */
  isOfProject?: true;
}

/** The provider does not accept the key of the project. */
export const KEY_REFUSED = 'key refused';

/** By the codes of llmp. Other codes of llmp speak for themselves. */
const CAUSES: ReadonlyMap<string, Cause> = new Map(
  Object.entries<Cause>({
    unauthorized: {
      why: 'unknown token',
      remedy: 'the client sent no token, or one that was never issued here: look at what it is configured with',
    },
    credential_in_query: { why: 'token in the URL', remedy: 'the client has to send it in a header' },
    request_limit_reached: { why: 'cap spent', remedy: 'issue another token, because a cap cannot be changed' },
    route_not_allowed: { why: 'route not allowed', remedy: "if it is wanted, add the route to the token's list" },
    route_escapes: { why: 'route escapes', remedy: "if it is wanted, name the route in the token's list" },
    concurrency_limited: {
      why: 'too many at once',
      remedy: 'if the requests are wanted, raise `concurrent` of the token or project',
    },
    model_not_allowed: { why: 'model not allowed', remedy: "if it is wanted, add the model to the token's list" },
    model_not_named: { why: 'no model named', remedy: 'the client has to name a model that the token may use' },
    model_not_checkable: {
      why: 'model not checkable',
      remedy: 'allow the token all models with `*`, or have the client use another route',
    },
    budget_exhausted: {
      why: 'budget spent',
      remedy: 'raise the budget of the token or project, or wait until it resets',
    },
    budget_reserved: {
      why: 'budget reserved',
      remedy: 'requests in flight have reserved the rest of the budget: the client may try again',
    },
    model_not_priced: {
      why: 'model without price',
      remedy: 'add the price of the model to PRICES_FILE, or change the budget to model tokens or to `soft`',
    },
    cost_not_bounded: {
      why: 'cost without bound',
      remedy: 'have the client send `max_tokens` and omit what its response names, or change the budget to `soft`',
    },
    usage_not_requested: {
      why: 'usage not requested',
      remedy: 'have the client send `stream_options`, or set `missing_usage` of the project to `inject`',
    },
    rate_limited: {
      why: 'rate limit',
      remedy: 'if the requests are wanted, raise the limits of the token or project, or those in the settings',
    },
    project_inactive: { why: 'project off', remedy: 'activate the project', isOfProject: true },
    unavailable: { why: 'llmp unavailable', remedy: 'run `llmp doctor`', isOfProject: true },
    internal: {
      why: 'error in llmp',
      remedy: 'look for the ID of the request in the log of the daemon',
      isOfProject: true,
    },
    not_cached: { why: 'not cached', remedy: 'the client asked for a stored response only' },
    loop_detected: {
      why: 'loop',
      remedy: 'correct the base URL of the project, which leads back to llmp',
      isOfProject: true,
    },
    upstream_key_rejected: {
      why: KEY_REFUSED,
      remedy: 'give the project a key that its provider accepts',
      isOfProject: true,
    },
    upstream_unreachable: {
      why: 'provider unreachable',
      remedy: 'check the base URL of the project, and the network',
      isOfProject: true,
    },
    upstream_timeout: { why: 'provider timed out', isOfProject: true },
    upstream_malformed: {
      why: 'malformed response',
      remedy: 'check that the base URL is that of a provider',
      isOfProject: true,
    },
  }),
);

const EXPIRED: Cause = { why: 'expired', remedy: 'issue the token again, because its expiry cannot be changed' };
const REVOKED: Cause = { why: 'revoked', remedy: 'reactivate the token, or issue another one' };

const REVOKED_MEANWHILE: Cause = { ...REVOKED, why: 'revoked meanwhile' };
const TIMED_OUT: Cause = { why: 'provider timed out', isOfProject: true };

const PROVIDER_LIMIT: Cause = {
  why: 'provider rate limit',
  remedy: "the limit is that of the project's key: send less, or have the provider raise it",
};
const PROVIDER_ERROR: Cause = {
  why: 'provider error',
  remedy: 'see the status page of the provider; clients may try again',
  isOfProject: true,
};
const BROKEN_OFF: Cause = { why: 'response broke off', isOfProject: true };
const STOPPED: Cause = { why: 'daemon stopped', isOfProject: true };
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

const BY_WHY: ReadonlyMap<string, Cause> = new Map(
  [
    ...[REVOKED, REVOKED_MEANWHILE, EXPIRED, ...CAUSES.values(), PROVIDER_LIMIT, PROVIDER_REFUSED],
    ...[PROVIDER_ERROR, BROKEN_OFF, STOPPED],
  ].map((cause) => [cause.why, cause]),
);

/** The cause with this name. */
export const causeNamed = (why: string): Cause => BY_WHY.get(why) ?? { why };

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
      return code === null
        ? PROVIDER_ERROR
        : { why: code, remedy: 'the provider reported it within its response', isOfProject: true };
    case 'upstream_refused':
      return status === 429 ? PROVIDER_LIMIT : PROVIDER_REFUSED;
    case 'upstream_error':
      return coded ?? PROVIDER_ERROR;
    case 'client_closed':
      return { why: 'client left' };
    case 'timeout':
      return coded ?? TIMED_OUT;
    case 'truncated':
      return BROKEN_OFF;
    case 'revoked':
      return REVOKED_MEANWHILE;
    case 'drained':
      return STOPPED;
    default:
      return coded ?? { why: outcome };
  }
}
