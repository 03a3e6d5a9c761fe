/** Masking of secrets in text from outside: reasons, paths, error messages of libraries. */

export const MASK = '********';

// Withering tokens, even in the middle of a word, and keys of most providers at the start of a word (not as in `task-…`). Some models
// are named `xai-…` or `pplx-…` too; the keys are longer than any such name.
const LOOKS_SECRET =
  /(?:(?<![A-Za-z0-9])sk-|sk-wt-)[A-Za-z0-9_-]{8,}|(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{30}|(?:gsk_|xai-|hf_|pplx-|r8_)[A-Za-z0-9]{24})[A-Za-z0-9_-]*/g;
// A fast pre-check, because nearly all texts contain none of these.
const MAY_HOLD_SECRET = /sk-|AIza|gsk_|xai-|hf_|pplx-|r8_/;

export function withoutSecrets(text: string): string {
  return MAY_HOLD_SECRET.test(text) ? text.replace(LOOKS_SECRET, MASK) : text;
}

/** Also masks a given secret. */
export function withoutSecret(secret: string | null, text: string): string {
  return withoutSecrets(secret ? text.replaceAll(secret, MASK) : text);
}

export const holdsSecret = (text: string): boolean => withoutSecrets(text) !== text;
