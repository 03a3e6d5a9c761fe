/** Writes what `readEnvFile` reads: `NAME=value` lines, among whatever else its owner keeps there. */
import { parseEnv } from 'node:util';
import { isEnvLine } from './sources.js';

// What means the same to every reader of such files, unquoted.
const PLAIN = /^[\w./:@%+,?&=~[\]*-]*$/;

/**
 * A setting as a line. It is read back before it is believed.
 *
 * @returns undefined for what no quotes can hold, such as a line break.
 */
export function envLine(name: string, value: string): string | undefined {
  const writings = [...(PLAIN.test(value) ? [value] : []), ...[`'`, `"`, '`'].map((quote) => quote + value + quote)];
  return writings
    .map((writing) => `${name}=${writing}`)
    .find((line) => isEnvLine(line) && parseEnv(`${line}\n`)[name] === value);
}

/** A value by its name; null for one that is to be there no more. */
export type Changes = ReadonlyMap<string, string | null>;

/**
 * Puts the changes into the text of an env file, each where the setting stood before, or at the end. All other lines stay as they are.
 *
 * @throws {RangeError} for a value that no line can hold; it is not in the message.
 */
export function withChanges(text: string, changes: Changes): string {
  let lines = text === '' ? [] : text.replace(/\n$/, '').split('\n');
  for (const [name, value] of changes) {
    const isIts = (line: string) => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line);
    const at = lines.findLastIndex(isIts); // The last one was the one that counted.
    const line = value === null ? [] : [lineOrThrow(name, value)];
    const rest = (part: readonly string[]) => part.filter((each) => !isIts(each));
    lines = at === -1 ? [...lines, ...line] : [...rest(lines.slice(0, at)), ...line, ...rest(lines.slice(at + 1))];
  }
  return `${lines.join('\n')}\n`;
}

function lineOrThrow(name: string, value: string): string {
  const line = envLine(name, value);
  if (line === undefined) throw new RangeError(`${name} has a value that no env file can hold; use ${name}_FILE`);
  return line;
}
