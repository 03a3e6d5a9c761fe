/** The rows of `llmp token generate --from FILE`: one token each, with a column for each option of the command that says how a token is. */
import { csvRows, CsvProblem } from '../../console/csv.js';
import { quoted, usage } from '../../console/failure.js';
import { isName } from '../../daemon/api/names.js';
import { holdsSecret, plainName } from '../../daemon/api/vocabulary.js';
import { suggestedValue } from '../help/suggest.js';
import type { Option, Values } from '../option.js';
import { issuingOptions, likeOption } from './issuing.js';

export const MAX_ROWS = 10_000;
/** Several times what so many rows need. */
export const MAX_FILE_BYTES = 8 * 1024 * 1024;
const MAX_PROBLEMS = 10;

const OPTIONS = { ...issuingOptions(24, ''), like: likeOption };
export type RowValues = Values<typeof OPTIONS>;
type Key = keyof typeof OPTIONS;

export interface TokenRow {
  /** Of the file. */
  line: number;
  values: RowValues;
}

/** An option's long name without the hyphens: `max-requests`. */
const nameOf = ({ flags }: Pick<Option<unknown>, 'flags'>): string => /--([\w-]+)/.exec(flags)?.[1] ?? flags;

/** `project-id` is a column for names and IDs, as the option is. */
const shortNameOf = (name: string): string => name.replace(/-id$/, '');

/** The names of the columns, for help. */
export const ROW_COLUMNS: readonly string[] = Object.values(OPTIONS).map((option) => shortNameOf(nameOf(option)));

const columnOf = (key: Key): string => `column ${shortNameOf(nameOf(OPTIONS[key]))}`;

/** The options of the command line that are columns. */
export const rowOptionsIn = (options: RowValues): RowValues =>
  Object.fromEntries(
    (Object.keys(OPTIONS) as Key[]).flatMap((key) => (options[key] === undefined ? [] : [[key, options[key]]])),
  );

/** Where the value for a row is from; null for a default. */
export function placeOf(key: Key, row: RowValues, options: RowValues): string | null {
  if (row[key] !== undefined) return columnOf(key);
  return options[key] === undefined ? null : `option --${nameOf(OPTIONS[key])}`;
}

/** Names are written as options are, or as fields of the API: `max_requests`. */
function keyOf(title: string): Key | undefined {
  const name = shortNameOf(title.trim().toLowerCase().replaceAll(/[_ ]/g, '-'));
  return (Object.keys(OPTIONS) as Key[]).find((key) => shortNameOf(nameOf(OPTIONS[key])) === name);
}

/** A mistake in one place of a file. */
export class RowProblems {
  readonly #file: string;
  readonly #found: string[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** @param place the column, or the option of the command that has the value. */
  add(line: number, place: string | null, message: string): void {
    this.#found.push(`line ${line}${place === null ? '' : `, ${place}`}: ${message}`);
  }

  /** @throws {Failure} with the first few, if there are any. */
  check(): void {
    const count = this.#found.length;
    if (count === 0) return;
    const more = count > MAX_PROBLEMS ? [`and ${count - MAX_PROBLEMS} more`] : [];
    throw usage(`${count === 1 ? 'a mistake' : `${count} mistakes`} in ${this.#file}; no token was issued`, {
      details: [...this.#found.slice(0, MAX_PROBLEMS), ...more],
      advice: `Each row needs a value for each of its columns, of: ${ROW_COLUMNS.join(', ')}`,
    });
  }
}

/** @param file its name for messages. @throws {Failure} that names the place of each mistake. */
export function tokenRows(text: string, file: string): TokenRow[] {
  const problems = new RowProblems(file);
  const [header, ...rows] = readRows(text, file);
  if (!header)
    throw usage(`${file} is empty`, { advice: `Its first line names the columns: ${ROW_COLUMNS.join(',')}` });
  const keys = header.cells.map((title, at) => {
    const key = keyOf(title);
    if (key === undefined) problems.add(header.line, `column ${at + 1}`, unknownColumn(title));
    return key;
  });
  const twice = keys.find((key, at) => key !== undefined && keys.indexOf(key) !== at);
  if (twice !== undefined) problems.add(header.line, columnOf(twice), 'the column occurs twice');
  problems.check();
  if (rows.length === 0) throw usage(`${file} has no rows after the names of the columns`);
  if (rows.length > MAX_ROWS) throw usage(`${file} has more than ${MAX_ROWS} rows`, { advice: 'Split it' });
  const read = rows.map(({ line, cells }): TokenRow => {
    if (cells.length !== keys.length) {
      problems.add(line, null, `${cells.length} ${cells.length === 1 ? 'value' : 'values'} for ${keys.length} columns`);
      return { line, values: {} };
    }
    const values = cells.map((cell, at) => {
      const key = keys[at] as Key;
      const { value, problem } = parsed(key, cell);
      if (problem !== undefined) problems.add(line, columnOf(key), problem);
      return [key, value] as const;
    });
    return { line, values: Object.fromEntries(values) };
  });
  problems.check();
  return read;
}

function readRows(text: string, file: string) {
  try {
    return csvRows(text, MAX_ROWS + 2);
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error;
    throw usage(`${file} is not CSV`, { details: [`line ${error.line}, column ${error.cell}: ${error.message}`] });
  }
}

function unknownColumn(title: string): string {
  if (title.trim() === '') return 'the column has no name';
  const near = suggestedValue(title.trim().toLowerCase(), ROW_COLUMNS);
  return `there is no column ${quoted(title)}${near === '' ? '' : `. ${near}`}`;
}

function parsed(key: Key, cell: string): { value?: unknown; problem?: string } {
  const given = plainName(cell);
  // An empty cell could mean no cap, or that somebody forgot it.
  if (given === '') return { problem: 'the value is missing' };
  if (holdsSecret(given)) return { problem: 'this is a secret' };
  const { kind }: Option<unknown> = OPTIONS[key];
  const value = kind ? kind.parse(given) : given;
  if (value === undefined) return { problem: `must be ${kind?.accepts ?? ''}, not ${quoted(given)}` };
  if (key === 'name' && !isName(given))
    return { problem: 'is not a name: up to 100 characters, none of them invisible' };
  return { value };
}
