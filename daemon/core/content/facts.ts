/** Validation of model names and error codes from requests and responses. */
import { withoutSecret } from '../masking.js';

const MAX_MODEL_LENGTH = 200;

/** @returns the name without unprintable characters; null if it is not a name. It may contain a secret. */
export function modelNameFrom(value: unknown): string | null {
  if (typeof value !== 'string' || value.length === 0 || value.length > 2 * MAX_MODEL_LENGTH) return null;
  const printable = PLAIN.test(value) ? value : value.replace(UNPRINTABLE, '');
  return printable === '' ? null : printable;
}

/**
 * A model name that is safe to record: a client may have sent a key instead of a model name, and a provider may repeat it.
 *
 * @param upstreamKey the key that was used for the request.
 */
export function maskedModelName(name: string | null, upstreamKey: string | null): string | null {
  if (name === null) return null;
  const masked = withoutSecret(upstreamKey, name);
  // Truncated last: a truncated key would not be recognised and masked.
  const cut = masked.length <= MAX_MODEL_LENGTH ? masked : Array.from(masked).slice(0, MAX_MODEL_LENGTH).join('');
  // Spaces at the end are no part of the name: MySQL would count both names as one, and other databases would not.
  return cut.trimEnd() || null;
}

/** Of an error whose code has another form, or none. */
export const UNNAMED_ERROR = 'unknown_error';

/** The code of a provider's error, safe to record: one that is a secret names nothing. @param upstreamKey as above. */
export const maskedErrorCode = (code: string | null, upstreamKey: string | null): string | null =>
  code !== null && withoutSecret(upstreamKey?.toLowerCase() ?? null, code) !== code ? UNNAMED_ERROR : code;

const PLAIN = /^[\x21-\x7e]+$/;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
