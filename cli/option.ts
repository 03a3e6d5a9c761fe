/** The declaration of a command's option, and the types of option values. */
import type { Kind } from '../config/kinds.js';
import type { FilteredScreen } from '../console/query/types.js';

/** What completion offers for a value. Files are recognised by the name `<FILE>`, and lists of values by the option's kind. */
export type Completes =
  | 'project'
  | 'token'
  | 'operator'
  | 'trust'
  | 'batch'
  | 'model'
  | 'context'
  | 'topic'
  | 'page'
  | `query of ${FilteredScreen}`;

export interface Option<T> {
  /** For example `-q, --quiet` or `--name <TEXT>`. Its long name in camel case is its key in the table of options. */
  flags: string;
  meaning: string;
  /** Absent for a flag, and for text that is not parsed. */
  kind?: Kind<T>;
  completes?: Completes | undefined;
}

// The type parameter affects the values only, so a table can hold any option.
export type Options = Record<string, Option<unknown>>;
/** The values given on the command line, without defaults. */
export type Values<O extends Options> = { [K in keyof O]?: O[K] extends Option<infer T> ? T | undefined : never };

export const flag = (flags: string, meaning: string): Option<boolean> => ({ flags, meaning });
export const text = (flags: string, meaning: string, completes?: Completes): Option<string> => ({
  flags,
  meaning,
  completes,
});
/** An option that can be repeated. @param flags for example `--set <TEXT...>`. */
export const texts = (flags: string, meaning: string): Option<string[]> => ({ flags, meaning });
export const value = <T>(flags: string, kind: Kind<T>, meaning: string, completes?: Completes): Option<T> => ({
  flags,
  meaning,
  kind,
  completes,
});

/** A subset of `all`: values separated by commas or in repeated options. A leading `!` selects all values except the given ones. */
export function valuesOf(flags: string, all: readonly string[], meaning: string): Option<string> {
  const kind: Kind<string> = {
    accepts: `one or more of ${all.join(', ')}, separated by commas; a leading ! selects all others`,
    values: all,
    isList: true,
    parse(given) {
      const named = given.replace(/^!/, '').split(',');
      return named.every((each) => all.includes(each)) ? given : undefined;
    },
  };
  return value(flags, kind, meaning);
}
