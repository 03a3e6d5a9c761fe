/** An option of a command as it is declared, and the values that a line gives. */
import type { Kind } from '../config/kinds.js';

/** What a word stands for, for the completion of it. A `<FILE>` says so by that name, a list of values by its kind. */
export type Completes = 'project' | 'token' | 'context' | 'topic' | 'page';

export interface Option<T> {
  /** Such as `-q, --quiet` or `--name <TEXT>`. Its long name in camel case is its key in the table of options. */
  flags: string;
  meaning: string;
  /** None: a flag, or text taken as it is. */
  kind?: Kind<T>;
  completes?: Completes | undefined;
}

// The type parameter lives in the values only; any option fits in a table.
export type Options = Record<string, Option<unknown>>;
/** What was given on the line; nothing has a default here. */
export type Values<O extends Options> = { [K in keyof O]?: O[K] extends Option<infer T> ? T | undefined : never };

export const flag = (flags: string, meaning: string): Option<boolean> => ({ flags, meaning });
export const text = (flags: string, meaning: string, completes?: Completes): Option<string> => ({
  flags,
  meaning,
  completes,
});
/** May be given several times. @param flags such as `--set <TEXT...>`. */
export const texts = (flags: string, meaning: string): Option<string[]> => ({ flags, meaning });
export const value = <T>(flags: string, kind: Kind<T>, meaning: string): Option<T> => ({
  flags,
  meaning,
  kind,
});

/** Some of these, separated by commas or given one by one; or all but some, with `!` in front of the first. */
export function valuesOf(flags: string, all: readonly string[], meaning: string): Option<string> {
  const kind: Kind<string> = {
    accepts: `one or more of ${all.join(', ')}, separated by commas; with ! in front of the first, all but these`,
    values: all,
    isList: true,
    parse(given) {
      const named = given.replace(/^!/, '').split(',');
      return named.every((each) => all.includes(each)) ? given : undefined;
    },
  };
  return value(flags, kind, meaning);
}
