/**
 * Requests that come neither for /v1 nor for /manage, on a listener that serves /v1. Most come from an SDK whose base URL
 * is not quite right, so they are refused in the SDK's dialect and told what the base URL is.
 */
import type { IncomingMessage } from 'node:http';
import type { Live } from '../../../config/settings.js';
import type { Refusal } from '../../core/refusal.js';
import { isHost } from '../shape.js';
import { type Wording, wordingFor, wordingOfUnread, type WordingSettings } from '../wording.js';

export interface OffPath {
  /** @returns undefined for management, which has one form of errors. */
  wording(refusal: Refusal, req: IncomingMessage): Wording | undefined;
  /** For a request that the parser gave up: where it was for is not known. */
  wordingOfUnread(refusal: Refusal): Wording;
}

export interface OffPathOptions {
  /** Those in force: SIGHUP may put others in their place. */
  live: Live<keyof WordingSettings>;
  /** Whether the client came over TLS, which ends at a proxy in front. */
  isTls: (req: IncomingMessage) => boolean;
}

export function offPath({ live, isTls }: OffPathOptions): OffPath {
  return {
    wording(refusal, req) {
      if (isManagement(req.url ?? '')) return undefined;
      const wording = wordingFor(refusal, req, live.current);
      return refusal.kind === 'not_found' ? { ...wording, hint: baseUrlHint(req, isTls) } : wording;
    },
    wordingOfUnread: (refusal) => wordingOfUnread(refusal, live.current),
  };
}

const isManagement = (target: string) => /^\/+manage(?:[/?]|$)/.test(target);

function baseUrlHint(req: IncomingMessage, isTls: (req: IncomingMessage) => boolean): string {
  const origin = originOf(req, isTls);
  return origin === null
    ? 'the API is under /v1: set the base URL to this address with /v1 behind it'
    : `the API is under /v1: set the base URL to ${origin}/v1`;
}

// A name of the DNS has no more characters; longer ones would only fill answers.
const LONGEST_HOST = 253 + ':65535'.length;

/** Where the client believes the API to be. @returns null where a proxy in front may have written another `Host`, or TLS ended there unsaid. */
function originOf(req: IncomingMessage, isTls: (req: IncomingMessage) => boolean): string | null {
  const { host } = req.headers;
  if (host === undefined || host.length > LONGEST_HOST || !isHost(host)) return null;
  if (isTls(req)) return `https://${host}`;
  return ADDED_BY_PROXIES.some((name) => req.headers[name] !== undefined) ? null : `http://${host}`;
}

const ADDED_BY_PROXIES = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip'];
