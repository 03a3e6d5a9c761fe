/** Who refused a request or cut it, and why: for operators who look for the cause of a failure. */
import type { WireRequestEvent } from './contract.js';

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
