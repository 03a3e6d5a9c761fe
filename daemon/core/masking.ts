/** Secrets in text that somebody else wrote: a reason, a path, the words of a library's error. */

export const MASK = '********';

// Withering tokens, whatever they are glued to, and most providers' keys, which are not the end of a word such as `task-`.
const LOOKS_SECRET = /(?:(?<![A-Za-z0-9])sk-|sk-wt-)[A-Za-z0-9_-]{8,}/g;

export function withoutSecrets(text: string): string {
  return text.includes('sk-') ? text.replace(LOOKS_SECRET, MASK) : text;
}

export const holdsSecret = (text: string): boolean => withoutSecrets(text) !== text;
