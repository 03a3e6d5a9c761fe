/** `Cache-Control` as RFC 9111 means it, read so that in doubt less is kept, and for less long. */

/** By name in lower case; '' for one without a value. Of one that stands there twice the smaller number counts. */
export type Directives = ReadonlyMap<string, string>;

const NONE: Directives = new Map();
// A quoted value has an end: what stands behind a quote without one is not taken out of sight by it.
const DIRECTIVE = /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;]*)))?/g;

/** @param field all fields of the name, joined. */
export function directivesOf(field: string | undefined): Directives {
  if (field === undefined) return NONE;
  const directives = new Map<string, string>();
  for (const [, name = '', quoted, plain] of field.matchAll(DIRECTIVE)) {
    const lower = name.toLowerCase();
    const value = quoted ?? plain ?? '';
    const before = directives.get(lower);
    directives.set(lower, before === undefined || millisecondsOf(value) < millisecondsOf(before) ? value : before);
  }
  return directives;
}

// RFC 9111, 1.2.2: at least 2^31 seconds need not be told from more.
const MOST_SECONDS = 2 ** 31;

/** Of a number of seconds; what is none counts as 0, so that nothing lives by a misspelling. */
export function millisecondsOf(seconds: string): number {
  return /^\d+$/.test(seconds) ? Math.min(Number(seconds), MOST_SECONDS) * 1000 : 0;
}

/** The first of these directives that is there, in ms; undefined if none is. */
export function firstOf(directives: Directives, ...names: string[]): number | undefined {
  for (const name of names) {
    const seconds = directives.get(name);
    if (seconds !== undefined) return millisecondsOf(seconds);
  }
  return undefined;
}
