/**
 * Finds withering tokens in text that a client sent: in header fields, and in the target of a request. A client may send
 * its token in more places than the one where it is read, and the provider must not get it from any of them.
 */
import { MASK, withoutSecrets } from './masking.js';
import { percentDecodedForms } from './percent.js';
import { SECRET_LENGTH, SECRET_PREFIX, SECRET_REST } from './token.js';

const TOKEN = new RegExp(SECRET_PREFIX + SECRET_REST);

/**
 * Whether a withering token stands anywhere in the text: as it is, in base64 or base64url (as `Basic` credentials hold
 * it), percent-encoded, or in base64 that is percent-encoded, up to three times over. Its checksum is not looked at, so
 * that a token with a typo is found as well. Linear in the length of the text; a text that is too short to hold a token,
 * as most header fields are, is not looked at.
 */
export function holdsToken(text: string): boolean {
  if (text.length < SECRET_LENGTH) return false;
  return text.includes('%') ? percentDecodedForms(text).some(holdsDecodedToken) : holdsDecodedToken(text);
}

const holdsDecodedToken = (text: string): boolean =>
  PREFIX.test(text) && (TOKEN.test(text) || holdsTokenInBase64(text));

/** The prefix of a token, as it is or in base64, at each of the three places where it can stand in a group of bytes. */
const PREFIX = new RegExp(
  [
    SECRET_PREFIX,
    ...[0, 1, 2].map((before) =>
      // The characters that depend on nothing else.
      btoa('\0'.repeat(before) + SECRET_PREFIX).slice(
        Math.ceil((before * 8) / 6),
        Math.floor(((before + SECRET_PREFIX.length) * 8) / 6),
      ),
    ),
  ].join('|'),
);

// At least as long as a token in base64 is. The look-behind keeps a run that is too short from being tried again at each of its characters.
const BASE64_RUN = new RegExp(`(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{${Math.floor((SECRET_LENGTH * 8) / 6)},}`, 'g');

/** Where the groups of four begin is not known: something may stand in front of them that looks like base64. */
const holdsTokenInBase64 = (text: string): boolean =>
  (text.match(BASE64_RUN) ?? []).some((run) =>
    [0, 1, 2, 3].some((start) => TOKEN.test(Buffer.from(run.slice(start), 'base64').toString('latin1'))),
  );

/** A path as it may be written down: a segment that holds a token in some encoding is masked whole. */
export function pathWithoutSecrets(path: string): string {
  const masked = withoutSecrets(path);
  if (!holdsToken(masked)) return masked;
  const segments = masked.split('/').map((segment) => (holdsToken(segment) ? MASK : segment));
  const rest = segments.join('/');
  return holdsToken(rest) ? MASK : rest; // In base64 a `/` may stand in the middle of it.
}
