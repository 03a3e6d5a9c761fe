/**
 * Masking of secrets in text from outside: names of models, paths, request IDs, reasons, error messages of libraries. Everything that is
 * recorded goes through here.
 *
 * **By form:** withering tokens, secrets of operators and sessions, and keys of most providers. **By value:** what this process knows (`neverRecord`), whatever it looks
 * like. Both also if they are percent-encoded.
 */
import { percentDecodedForms } from './percent.js';

export const MASK = '********';

// Withering tokens and secrets of operators and sessions, even in the middle of a word, and keys of most providers at the start of a word (not as in `task-…`). Some models
// are named `xai-…` or `pplx-…` too; the keys are longer than any such name.
const LOOKS_SECRET =
  /(?:(?<![A-Za-z0-9])sk-|sk-(?:wt|op|ss)-)[A-Za-z0-9_-]{8,}|(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{30}|(?:gsk_|xai-|hf_|pplx-|r8_|csk-|fw_|sk_|nvapi-|gh[opsu]_)[A-Za-z0-9]{24})[A-Za-z0-9_-]*/g;
// A fast pre-check, because nearly all texts contain none of these.
const MAY_HOLD_SECRET = /sk[-_]|AIza|xai-|hf_|pplx-|r8_|fw_|nvapi-|gh[opsu]_/;

/** Shorter ones are parts of ordinary text. */
const MIN_KNOWN_LENGTH = 8;
const MAX_KNOWN_KEYS = 10_000;

/** Found anywhere in a text. There are only a few. */
const knownSecrets: string[] = [];
/** Keys of providers, found as whole words: there may be one for each of thousands of projects. The oldest are forgotten. */
const knownKeys = new Set<string>();
/** Their lengths: most words have none of these, and most texts are shorter. */
const keyLengths = new Set<number>();
let shortestKey = Infinity;

/** From now on, no text that is masked contains the management token. */
export function neverRecord(secret: string): void {
  if (secret.length >= MIN_KNOWN_LENGTH && !knownSecrets.includes(secret)) knownSecrets.push(secret);
}

/** The same for a provider's key. */
export function neverRecordKey(key: string): void {
  if (key.length < MIN_KNOWN_LENGTH || knownKeys.has(key)) return;
  knownKeys.add(key);
  keyLengths.add(key.length);
  shortestKey = Math.min(shortestKey, key.length);
  const [oldest] = knownKeys;
  if (knownKeys.size > MAX_KNOWN_KEYS && oldest !== undefined) knownKeys.delete(oldest);
}

export function withoutSecrets(text: string): string {
  const masked = withoutPlainSecrets(text);
  return masked.includes('%')
    ? masked.replace(ENCODED_WORD, (word) => (holdsEncodedSecret(word) ? MASK : word))
    : masked;
}

function withoutPlainSecrets(text: string): string {
  let masked = text;
  for (const secret of knownSecrets) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASK);
  if (isKnownKey(masked)) return MASK;
  if (masked.length > shortestKey) masked = masked.replace(WORD, (word) => (isKnownKey(word) ? MASK : word));
  return MAY_HOLD_SECRET.test(masked) ? masked.replace(LOOKS_SECRET, MASK) : masked;
}

const WORD = /[^\s/?&=,;:"'<>()[\]{}|\\]{8,}/g;
const ENCODED_WORD = /[^\s/?&="'<>]*%[^\s/?&="'<>]*/g;

const isKnownKey = (word: string): boolean => keyLengths.has(word.length) && knownKeys.has(word);

function holdsEncodedSecret(word: string): boolean {
  const [, ...decoded] = percentDecodedForms(word);
  return decoded.some((form) => withoutPlainSecrets(form) !== form);
}

/** Also masks a given secret. */
export function withoutSecret(secret: string | null, text: string): string {
  return withoutSecrets(secret ? text.replaceAll(secret, MASK) : text);
}

export const holdsSecret = (text: string): boolean => withoutSecrets(text) !== text;
