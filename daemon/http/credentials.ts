import { createHash, randomFillSync, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { holdsSecret } from '../core/masking.js';
import { percentDecodedForms } from '../core/percent.js';
import { credentialInTarget } from '../core/refusal.js';
import { digestOf, SECRET_LENGTH } from '../core/token.js';
import { holdsToken } from '../core/token-in-text.js';

/** The credential of `Authorization: Bearer <credential>`: any letter case of the scheme, exactly one space. */
export function bearerOf(authorization: string | undefined): string | null {
  return (authorization !== undefined && /^bearer ([\x21-\x7e]+)$/i.exec(authorization)?.[1]) || null;
}

export interface Presented {
  secret: string;
  digest: string;
}

// What a connection's last request presented. Most clients present the same again, and a digest is a twentieth of a request's work.
const lastPresented = new WeakMap<Socket, Presented & { authorization: string }>();

/** @returns the secret in `authorization` with its digest, which is remembered while the connection's requests bear the same. */
export function presentedIn(authorization: string | undefined, socket: Socket): Presented | null {
  if (authorization === undefined) return null;
  const last = lastPresented.get(socket);
  if (last && isSame(last.authorization, authorization)) return last;
  const secret = bearerOf(authorization);
  if (secret === null) return null;
  const presented = { authorization, secret, digest: digestOf(secret) };
  if (secret.length === SECRET_LENGTH) lastPresented.set(socket, presented);
  return presented;
}

/** In a time that tells nothing: whoever is in front of us may have put requests of several clients on one connection. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

export interface Subprotocols {
  /** What a page puts among them because a browser lets it set no `Authorization`. */
  credential: string | null;
  /** Those that are for the upstream. */
  offered: string[];
}

/** Query parameters in which APIs take a credential, in lower case. */
const CREDENTIAL_PARAMETERS: ReadonlySet<string> = new Set([
  'key',
  'api_key',
  'api-key',
  'apikey',
  'access_token',
  'subscription-key',
  'x-api-key',
  'x-goog-api-key',
]);

/**
 * The target is forwarded byte for byte, and many write it down on its way. So a request whose target holds a withering
 * token, or anything in a parameter that is for a credential, is refused, even if the right token stands in its header.
 *
 * @throws {Refusal}
 */
export function checkNoCredentialIn(target: string): void {
  const query = target.indexOf('?');
  if (holdsToken(target) || (query !== -1 && holdsCredential(target.slice(query + 1)))) throw credentialInTarget();
}

/** A parameter without a value, as in `?key=`, is no credential. */
const holdsCredential = (query: string): boolean =>
  query.split(/[&;]/).some((parameter) => {
    const equals = parameter.indexOf('=');
    if (equals === -1 || equals === parameter.length - 1) return false;
    return percentDecodedForms(parameter.slice(0, equals)).some((name) =>
      CREDENTIAL_PARAMETERS.has(name.toLowerCase()),
    );
  });

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
    offered: names.filter((name) => ![CREDENTIAL, ...NOT_OFFERED].some((it) => begins(it)(name)) && !holdsToken(name)),
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
  return isFit ? presented : newRequestId();
}

const ID_BYTES = 16;
const randomBytes = Buffer.alloc(256 * ID_BYTES);
let used = randomBytes.length;

/** Random as a UUID is, which Node puts together from twenty pieces of text. */
function newRequestId(): string {
  if (used === randomBytes.length) {
    randomFillSync(randomBytes);
    used = 0;
  }
  used += ID_BYTES;
  return randomBytes.toString('hex', used - ID_BYTES, used);
}
