/** Writes rows to a file as CSV, JSON or JSON lines: tokens with their secrets, and exported lists. Only this user can read it. */
import { randomBytes } from 'node:crypto';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { csvCell, visibleJson } from './escape.js';
import type { TableFormat } from './table-format.js';

/** A value of a cell. CSV has lists and objects as JSON. */
type Row = Readonly<Record<string, unknown>>;

const OWNER_ONLY = 0o600;

/** The text of a table, part by part. Each part is whole lines, so that what was written is of use if the rest is not. */
export class TableText {
  readonly #format: TableFormat;
  readonly #fields: readonly string[];
  #rows = 0;

  constructor(format: TableFormat, fields: readonly string[]) {
    this.#format = format;
    this.#fields = fields;
  }

  /** What is before the rows. */
  get begin(): string {
    if (this.#format === 'csv') return `${this.#fields.map(csvCell).join(',')}\r\n`;
    return this.#format === 'json' ? '[' : '';
  }

  rows(rows: readonly Row[]): string {
    return rows.map((row) => this.#row(row)).join('');
  }

  get end(): string {
    if (this.#format !== 'json') return '';
    return this.#rows === 0 ? ']\n' : '\n]\n';
  }

  #row(row: Row): string {
    this.#rows += 1;
    if (this.#format === 'csv') return `${this.#fields.map((field) => csvCell(row[field])).join(',')}\r\n`;
    const json = visibleJson(Object.fromEntries(this.#fields.map((field) => [field, row[field] ?? null])));
    if (this.#format === 'jsonl') return `${json}\n`;
    return `${this.#rows === 1 ? '' : ','}\n  ${json}`;
  }
}

interface TableFileOptions {
  format: TableFormat;
  fields: readonly string[];
  /** Whether an existing file is replaced, once the new one is complete. */
  replaces?: boolean;
}

export class TableFile {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #writtenTo: string;
  readonly #text: TableText;

  private constructor(file: FileHandle, path: string, writtenTo: string, text: TableText) {
    this.#file = file;
    this.#path = path;
    this.#writtenTo = writtenTo;
    this.#text = text;
  }

  /** @throws the error of the file system: `EEXIST` if there is a file already, which is not to be replaced. */
  static async create(path: string, { format, fields, replaces = false }: TableFileOptions): Promise<TableFile> {
    const writtenTo = replaces ? join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`) : path;
    const table = new TableFile(
      await open(writtenTo, 'wx', OWNER_ONLY),
      path,
      writtenTo,
      new TableText(format, fields),
    );
    try {
      await table.#file.writeFile(table.#text.begin);
    } catch (error) {
      await table.discard();
      throw error;
    }
    return table;
  }

  /** Resolves when the rows are in the file. */
  async add(rows: readonly Row[]): Promise<void> {
    await this.#file.writeFile(this.#text.rows(rows));
  }

  /** Completes the file. */
  async close(): Promise<void> {
    try {
      await this.#file.writeFile(this.#text.end);
      await this.#file.sync();
    } finally {
      await this.#file.close();
    }
    if (this.#writtenTo !== this.#path) await rename(this.#writtenTo, this.#path);
  }

  /** Removes what was written. */
  async discard(): Promise<void> {
    await this.#file.close();
    await unlink(this.#writtenTo);
  }
}
