import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { holdsSecret } from '../core/masking.js';

/** The credential of `Authorization: Bearer <credential>`: any letter case of the scheme, exactly one space. */
export function bearerOf(authorization: string | undefined): string | null {
  return (authorization !== undefined && /^bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1]) || null;
}

export interface Subprotocols {
  /** What a page puts among them because a browser lets it set no `Authorization`. */
  credential: string | null;
  /** Those that are for the upstream. */
  offered: string[];
}

const CREDENTIAL = 'openai-insecure-api-key.';
// Like the header fields of these names: who pays is the project's matter.
const NOT_OFFERED = ['openai-organization.', 'openai-project.'];

/** What a WebSocket's handshake names in `Sec-WebSocket-Protocol`. */
export function subprotocolsOf(field: string | undefined): Subprotocols {
  const names = (field ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const begins = (beginning: string) => (name: string) => name.toLowerCase().startsWith(beginning);
  const credentials = names.filter(begins(CREDENTIAL));
  return {
    // One of two would be a choice that somebody else may make otherwise.
    credential: credentials.length === 1 ? credentials.join().slice(CREDENTIAL.length) : null,
    offered: names.filter((name) => ![CREDENTIAL, ...NOT_OFFERED].some((it) => begins(it)(name))),
  };
}

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** @returns tells in constant time whether a presented value is the expected one. */
export function exactly(expected: string): (presented: string) => boolean {
  const digest = sha256(expected);
  // Both sides are hashed first: timingSafeEqual wants equal lengths, and a length check in front of it
  // would tell a guesser how long the credential is.
  return (presented) => timingSafeEqual(sha256(presented), digest);
}

const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** The client's own id if it can do no harm in a log, else a new one. */
export function requestIdOf(presented: string | string[] | undefined): string {
  // It is stored and logged, so a secret put in the wrong place is none.
  const isFit = typeof presented === 'string' && REQUEST_ID.test(presented) && !holdsSecret(presented);
  return isFit ? presented : randomUUID();
}
