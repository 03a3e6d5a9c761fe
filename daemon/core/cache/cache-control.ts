/** Parser for `Cache-Control` (RFC 9111, 5.2). Where a value is ambiguous, it is read so that less is stored, and for less time. */

import { boundedMemo } from '../bounded-memo.js';

/** Directives by lower-case name; '' if without a value. Of a repeated directive the smaller number counts. */
export type Directives = ReadonlyMap<string, string>;

const NONE: Directives = new Map();
// A quoted value must be closed: an unclosed quote must not hide the directives after it.
const DIRECTIVE = /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;]*)))?/g;

/** @param field the values of all fields of that name, joined with commas. */
export const directivesOf = (field: string | undefined): Directives => (field === undefined ? NONE : parsed(field));

// Clients and providers send the same few values with every message.
const parsed = boundedMemo((field): Directives => {
  const directives = new Map<string, string>();
  for (const [, name = '', quoted, plain] of field.matchAll(DIRECTIVE)) {
    const lower = name.toLowerCase();
    const value = quoted ?? plain ?? '';
    const before = directives.get(lower);
    directives.set(lower, before === undefined || millisecondsOf(value) < millisecondsOf(before) ? value : before);
  }
  return directives;
});

// RFC 9111, 1.2.2: larger values are treated as 2^31 seconds.
const MAX_SECONDS = 2 ** 31;

/** Converts seconds to ms. An invalid number counts as 0, so that a typo never extends a lifetime. */
export function millisecondsOf(seconds: string): number {
  return /^\d+$/.test(seconds) ? Math.min(Number(seconds), MAX_SECONDS) * 1000 : 0;
}

/** Value in ms of the first of these directives that is present; undefined if none is. */
export function firstOf(directives: Directives, ...names: string[]): number | undefined {
  for (const name of names) {
    const seconds = directives.get(name);
    if (seconds !== undefined) return millisecondsOf(seconds);
  }
  return undefined;
}
