/**
 * Finds withering tokens in header fields and request targets. A client may send its token in more places than the `Authorization`
 * header, and the provider must not receive it from any of them; nor the secret of an operator or a session, which has the same form.
 */
import { MASK, withoutSecrets } from './masking.js';
import { percentDecodedForms } from './percent.js';
import { SECRET_LENGTH, SECRET_PREFIXES, SECRET_REST } from './token.js';

const BEGINNINGS = Object.values(SECRET_PREFIXES);
const TOKEN = new RegExp(`(?:${BEGINNINGS.join('|')})${SECRET_REST}`);

/**
 * Whether the text contains a withering token: plain, in base64 or base64url (as in `Basic` credentials), percent-encoded, or
 * base64 that is percent-encoded, up to three times. The checksum is not verified, so that tokens with a typo are found as well.
 * Linear in the length of the text. Most header fields are too short to contain a token and are skipped.
 */
export function holdsToken(text: string): boolean {
  if (text.length < SECRET_LENGTH) return false;
  return text.includes('%') ? percentDecodedForms(text).some(holdsDecodedToken) : holdsDecodedToken(text);
}

const holdsDecodedToken = (text: string): boolean =>
  PREFIX.test(text) && (TOKEN.test(text) || holdsTokenInBase64(text));

/** The prefix of a token, plain or in base64 at each of the three possible offsets in a group of bytes. */
const PREFIX = new RegExp(
  BEGINNINGS.flatMap((prefix) => [
    prefix,
    ...[0, 1, 2].map((before) =>
      // Only the characters that do not depend on neighbouring bytes.
      btoa('\0'.repeat(before) + prefix).slice(
        Math.ceil((before * 8) / 6),
        Math.floor(((before + prefix.length) * 8) / 6),
      ),
    ),
  ]).join('|'),
);

// A run at least as long as a token in base64. The lookbehind prevents a run that is too short from being tried at each character.
const BASE64_RUN = new RegExp(`(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{${Math.floor((SECRET_LENGTH * 8) / 6)},}`, 'g');

/** Tries all four alignments: characters that look like base64 may precede the encoded token. */
const holdsTokenInBase64 = (text: string): boolean =>
  (text.match(BASE64_RUN) ?? []).some((run) =>
    [0, 1, 2, 3].some((start) => TOKEN.test(Buffer.from(run.slice(start), 'base64').toString('latin1'))),
  );

/** A path that is safe to log: a segment that contains a token in any encoding is masked as a whole. */
export function pathWithoutSecrets(path: string): string {
  const masked = withoutSecrets(path);
  if (!holdsToken(masked)) return masked;
  const segments = masked.split('/').map((segment) => (holdsToken(segment) ? MASK : segment));
  const rest = segments.join('/');
  return holdsToken(rest) ? MASK : rest; // Base64 may contain a `/`, so that a token spans segments.
}
