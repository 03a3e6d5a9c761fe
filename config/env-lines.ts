/**
 * The lines of env files. Where `EnvironmentFile=` of systemd and `--env-file` of Docker agree on a line, it has the same value here, so that
 * a file can be given to any of them. Where they differ, a value in quotes is read as by systemd, and any other as by Docker.
 */

/** A line with a setting. */
export interface EnvLine {
  name: string;
  value: string;
  /** Whether the value may include a comment by mistake. */
  mayIncludeComment: boolean;
}

const NAME_AND_VALUE = /^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(.*)$/;
const IGNORED = /^[ \t]*(?:#.*)?$/;
const IN_QUOTES = /^(?:'([^']*)'|"((?:[^"\\]|\\.)*)")$/;

/**
 * @param line without its end.
 * @returns null for a comment or a blank line; what is wrong with it, as the end of a sentence, if it is not valid.
 */
export function readEnvLine(line: string): EnvLine | null | string {
  if (IGNORED.test(line)) return null;
  const [, name, written] = NAME_AND_VALUE.exec(line) ?? [];
  if (name === undefined || written === undefined) return 'not NAME=value';
  const text = written.replace(/[ \t]+$/, '');
  if (!/^['"]/.test(text)) return { name, value: text, mayIncludeComment: /[ \t]#/.test(text) };
  const [all, single, double = ''] = IN_QUOTES.exec(text) ?? [];
  if (all === undefined) return 'not NAME=value: a value that begins with a quote must end with it';
  return { name, value: single ?? double.replace(/\\(["\\`$])/g, '$1'), mayIncludeComment: false };
}

// Characters that need no quotes in any reader of env files.
const PLAIN = /^[\w./:@%+,?&=~[\]*-]*$/;

/**
 * A setting as a line. Each candidate is read again to verify that it gives the same value.
 *
 * @returns undefined for a value that cannot be written, because it has a line break.
 */
export function writtenEnvLine(name: string, value: string): string | undefined {
  if (/[\r\n]/.test(value)) return undefined;
  const inQuotes = [`'${value}'`, `"${value.replace(/["\\`$]/g, '\\$&')}"`];
  return [...(PLAIN.test(value) ? [value] : []), ...inQuotes]
    .map((written) => `${name}=${written}`)
    .find((line) => {
      const read = readEnvLine(line);
      return typeof read === 'object' && read?.value === value;
    });
}

// ---- changes

/** New values by name; null removes the setting. */
export type Changes = ReadonlyMap<string, string | null>;

/**
 * Applies changes to the text of an env file. A setting is changed in place, or appended. All other lines do not change.
 *
 * @throws {RangeError} for a value that cannot be written; the message does not contain it.
 */
export function withChanges(text: string, changes: Changes): string {
  let lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of changes) {
    const isIts = (line: string) => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line);
    const at = lines.findLastIndex(isIts); // The last occurrence is the effective one.
    const line = value === null ? [] : [lineOrThrow(name, value)];
    const rest = (part: readonly string[]) => part.filter((each) => !isIts(each));
    lines = at === -1 ? [...lines, ...line] : [...rest(lines.slice(0, at)), ...line, ...rest(lines.slice(at + 1))];
  }
  return `${lines.join('\n')}\n`;
}

function lineOrThrow(name: string, value: string): string {
  const line = writtenEnvLine(name, value);
  if (line === undefined)
    throw new RangeError(`the value of ${name} cannot be written to an env file; use ${name}_FILE`);
  return line;
}
