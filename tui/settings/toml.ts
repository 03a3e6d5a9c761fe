/** Reads TOML with the line of each value, for messages. */
import { parse } from 'smol-toml';

/** Something that is wrong with a file of settings. */
export interface SettingsProblem {
  /** Null: it concerns the whole file. */
  line: number | null;
  message: string;
}

export type Table = Record<string, unknown>;

export interface Toml {
  table: Table;
  /** The line of a value or table, counted from 1; null if it was not found. */
  lineOf(...path: readonly string[]): number | null;
}

export const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** @returns the problem if the text is not TOML. */
export function readToml(text: string): Toml | SettingsProblem {
  try {
    const table = parse(text);
    const lines = linesOf(text);
    return { table, lineOf: (...path) => lines.get(path.join('\0')) ?? null };
  } catch (error) {
    const { line = null, message } = error as Error & { line?: number };
    const [reason = ''] = message.replace(/^Invalid TOML document: /, '').split('\n');
    return { line, message: `this is not TOML: ${reason}` };
  }
}

export const isProblem = (read: Toml | SettingsProblem): read is SettingsProblem => 'message' in read;

const KEY = String.raw`(?:[\w-]+|"[^"\n]*"|'[^'\n]*')`;
const PATH = String.raw`${KEY}(?:[ \t]*\.[ \t]*${KEY})*`;
const HEADER = new RegExp(String.raw`^\s*\[[ \t]*(${PATH})[ \t]*\]`);
const VALUE = new RegExp(String.raw`^\s*(${PATH})[ \t]*=`);

/** The first line of each path. The parser has checked the text, so this only has to find the names. */
function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  let table: readonly string[] = [];
  const found = (path: readonly string[], line: number) => {
    // Also the tables that a dotted name implies.
    for (let length = 1; length <= path.length; length++) {
      const key = path.slice(0, length).join('\0');
      if (!lines.has(key)) lines.set(key, line);
    }
  };
  text.split('\n').forEach((line, index) => {
    const [, header] = HEADER.exec(line) ?? [];
    if (header !== undefined) {
      table = namesOf(header);
      found(table, index + 1);
      return;
    }
    const [, value] = VALUE.exec(line) ?? [];
    if (value !== undefined) found([...table, ...namesOf(value)], index + 1);
  });
  return lines;
}

const namesOf = (path: string) =>
  (path.match(new RegExp(KEY, 'g')) ?? []).map((name) => name.replace(/^(["'])(.*)\1$/, '$2'));
