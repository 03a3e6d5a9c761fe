/** Reads CSV by RFC 4180: quoted cells with separators, quotes and line ends in them; CRLF or LF; with or without a byte order mark. */

export interface CsvRow {
  /** The line that it begins in, from 1. A quoted cell can have several lines. */
  line: number;
  cells: readonly string[];
}

/** What is wrong with the text, and where. */
export class CsvProblem extends Error {
  readonly line: number;
  /** The number of the cell in its row, from 1. */
  readonly cell: number;
  override name = 'CsvProblem';

  constructor(message: string, line: number, cell: number) {
    super(message);
    this.line = line;
    this.cell = cell;
  }
}

/** Spreadsheets of some languages write semicolons, and copied cells have tabs. */
const SEPARATORS = [',', ';', '\t'];

/**
 * The rows, without empty lines. The first separator in the first line is that of all lines: names of columns contain none.
 *
 * @param most the rows after which it stops reading. @throws {CsvProblem}
 */
export function csvRows(text: string, most: number): CsvRow[] {
  const rows: CsvRow[] = [];
  const begin = text.startsWith('\ufeff') ? 1 : 0;
  const separator = Array.from(/^[^\r\n]*/.exec(text)?.[0] ?? '').find((it) => SEPARATORS.includes(it)) ?? ',';
  const reader = new Reader(text, begin, separator);
  while (!reader.isAtEnd && rows.length < most) {
    const row = reader.row();
    if (row.cells.length > 1 || row.cells[0] !== '') rows.push(row);
  }
  return rows;
}

class Reader {
  readonly #text: string;
  readonly #separator: string;
  readonly #ofPlainCell: RegExp;
  #at: number;
  #line = 1;

  constructor(text: string, begin: number, separator: string) {
    this.#text = text;
    this.#at = begin;
    this.#separator = separator;
    this.#ofPlainCell = new RegExp(`[^${separator}\r\n]*`, 'y');
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  row(): CsvRow {
    const line = this.#line;
    const cells: string[] = [];
    do cells.push(this.#next === '"' ? this.#quoted(cells.length + 1) : this.#plain(cells.length + 1));
    while (this.#took(this.#separator));
    this.#took('\r');
    this.#took('\n');
    this.#line += 1;
    return { line, cells };
  }

  get #next(): string | undefined {
    return this.#text[this.#at];
  }

  #took(character: string): boolean {
    if (this.#next !== character) return false;
    this.#at += 1;
    return true;
  }

  #plain(cell: number): string {
    this.#ofPlainCell.lastIndex = this.#at;
    const [text = ''] = this.#ofPlainCell.exec(this.#text) ?? [];
    if (text.includes('"')) throw new CsvProblem('a cell with a quote in it must be quoted', this.#line, cell);
    this.#at += text.length;
    return text;
  }

  #quoted(cell: number): string {
    const line = this.#line;
    let content = '';
    while (this.#took('"')) {
      const end = this.#text.indexOf('"', this.#at);
      if (end === -1) throw new CsvProblem('a quote is not closed', line, cell);
      // A quote that is followed by another one stands for itself.
      content += this.#text.slice(this.#at, end);
      this.#at = end + 1;
      if (this.#next === '"') content += '"';
    }
    this.#line += content.split(/\r\n|\r|\n/).length - 1;
    const next = this.#next;
    if (next !== undefined && next !== this.#separator && next !== '\r' && next !== '\n')
      throw new CsvProblem('there is text after the closing quote', this.#line, cell);
    return content;
  }
}
