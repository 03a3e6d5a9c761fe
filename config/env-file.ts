/** Edits env files: changes `NAME=value` lines, as `readEnvFile` reads them, and preserves all other lines. */
import { writtenEnvLine } from './env-lines.js';

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
