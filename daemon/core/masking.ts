/** Secrets in text that somebody else wrote: a reason, a path, the words of a library's error. */

export const MASK = '********';

// Withering tokens, whatever they are glued to, and most providers' keys, which are not the end of a word such as `task-`. Some
// models are called `xai-…` or `pplx-…` as well; their keys are longer than any such name.
const LOOKS_SECRET =
  /(?:(?<![A-Za-z0-9])sk-|sk-wt-)[A-Za-z0-9_-]{8,}|(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{30}|(?:gsk_|xai-|hf_|pplx-|r8_)[A-Za-z0-9]{24})[A-Za-z0-9_-]*/g;
// Nearly every text has none of them, and is told from the others in a fraction of the time.
const MAY_HOLD_SECRET = /sk-|AIza|gsk_|xai-|hf_|pplx-|r8_/;

export function withoutSecrets(text: string): string {
  return MAY_HOLD_SECRET.test(text) ? text.replace(LOOKS_SECRET, MASK) : text;
}

/** The same, and without a secret that is known. */
export function withoutSecret(secret: string | null, text: string): string {
  return withoutSecrets(secret ? text.replaceAll(secret, MASK) : text);
}

export const holdsSecret = (text: string): boolean => withoutSecrets(text) !== text;
