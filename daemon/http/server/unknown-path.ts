/**
 * Errors for requests outside of /v1 and /manage, on a listener that serves /v1. Most of them come from an SDK with a wrong base URL, so
 * they have the SDK's error format and name the right base URL.
 */
import type { IncomingMessage } from 'node:http';
import type { Live } from '../../../config/settings.js';
import type { Refusal } from '../../core/refusal.js';
import type { ErrorFormat } from '../error-format.js';
import { isHost } from '../request-head.js';
import { type Wording, wordingFor, wordingForUnreadable, type WordingSettings } from '../wording.js';

export interface UnknownPathErrors {
  /** @returns undefined for the management API, which has one error format. */
  wording(refusal: Refusal, req: IncomingMessage): Wording | undefined;
  /** For a request that could not be parsed, so that its path is unknown. */
  wordingForUnreadable(refusal: Refusal): Wording;
}

export interface UnknownPathOptions {
  /** The current settings: SIGHUP may replace them. */
  live: Live<keyof WordingSettings>;
  /** Whether the client used TLS, which is terminated by a proxy in front. */
  isTls: (req: IncomingMessage) => boolean;
}

export function unknownPathErrors({ live, isTls }: UnknownPathOptions): UnknownPathErrors {
  return {
    wording(refusal, req) {
      if (isManagement(req.url ?? '')) return undefined;
      const wording = wordingFor(refusal, req, live.current);
      return refusal.kind === 'not_found' ? { ...wording, hint: baseUrlHint(req, isTls, wording.format) } : wording;
    },
    wordingForUnreadable: (refusal) => wordingForUnreadable(refusal, live.current),
  };
}

const isManagement = (target: string) => /^\/+manage(?:[/?]|$)/.test(target);

function baseUrlHint(req: IncomingMessage, isTls: (req: IncomingMessage) => boolean, format: ErrorFormat): string {
  const origin = originOf(req, isTls);
  const path = format === 'google' ? '/v1beta' : '/v1';
  return origin === null
    ? `the API is under ${path}: add ${path} to the base URL`
    : `the API is under ${path}: set the base URL to ${origin}${path}`;
}

// DNS names are at most this long; a longer one would only make error messages long.
const MAX_HOST_LENGTH = 253 + ':65535'.length;

/**
 * The origin that the client used. @returns null if it is uncertain, because a proxy in front may have changed `Host` or terminated TLS
 * without saying so.
 */
function originOf(req: IncomingMessage, isTls: (req: IncomingMessage) => boolean): string | null {
  const { host } = req.headers;
  if (host === undefined || host.length > MAX_HOST_LENGTH || !isHost(host)) return null;
  if (isTls(req)) return `https://${host}`;
  return ADDED_BY_PROXIES.some((name) => req.headers[name] !== undefined) ? null : `http://${host}`;
}

const ADDED_BY_PROXIES = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip'];
