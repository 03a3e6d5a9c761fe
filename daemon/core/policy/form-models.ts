/**
 * Finds the models that a multipart form names, while its bytes pass (RFC 7578). As strict as json-models.ts, for the same reason: parsers of forms
 * differ in what they take for the end of a part, and for the name of a field.
 */
import { plainKey } from './json-models.js';

const MAX_PART_HEADER_BYTES = 4 * 1024;
const MAX_PARTS = 1_000;
const MAX_NAMES = 100;
const MAX_NAME_BYTES = 400;

const BOUNDARY = /^multipart\/form-data *; *boundary=(?:"([\w'()+,./:=?-]{1,70})"|([\w'+.-]{1,70}))$/i;
const LINE_END = '\r\n';
const END_OF_HEADER = Buffer.from('\r\n\r\n');
const HEADER = /^(content-disposition|content-type|content-length|content-transfer-encoding): *(.*)$/i;
const DISPOSITION = /^form-data((?: *; *(?:name|filename)="[^"\\]*"| *; *filename\*=[^\s;"]+)+)$/i;
const PARAMETER = /; *([a-z*]+)=(?:"([^"]*)"|[^\s;"]+)/gi;
const PLAIN_NAME = /^[\x20-\x24\x26-\x5b\x5d-\x7e]*$/;
const IS_TEXT = /^text\/plain(?: *; *charset="?(?:utf-8|us-ascii)"?)?$/i;

/** Fields that name models. */
const FIELDS: ReadonlySet<string> = new Set(['model', 'models', 'models[]']);
/** A field with a document, in which models may be named. */
const DOCUMENT = 'session';

/** @returns the boundary of a form; null if the type is another, or its parameters are unusual. */
export function boundaryOf(contentType: string): string | null {
  const found = BOUNDARY.exec(contentType);
  return found?.[1] ?? found?.[2] ?? null;
}

export class FormModels {
  readonly names: string[] = [];
  readonly isInBackground = false;
  problem: string | null = null;
  /** Whether a field may name models where they are not looked for. */
  isUncheckable = false;
  isComplete = false;
  readonly #delimiter: Buffer;
  #state: 'start' | 'delimiter' | 'header' | 'content' | 'end' = 'start';
  /** What was not read yet. */
  #held = Buffer.alloc(0);
  /** The value of a field that names a model; null in other parts. */
  #value: Buffer | null = null;
  readonly #seen = new Set<string>();
  #parts = 0;

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`--${boundary}`, 'latin1');
  }

  add(bytes: Buffer, from = 0, to = bytes.length): void {
    if (this.problem !== null) return;
    this.#held = Buffer.concat([this.#held, bytes.subarray(from, to)]);
    while (!this.#hasFailed && this.#step());
  }

  end(): void {
    if (!this.isComplete) this.#fail('the form is not complete');
  }

  get #hasFailed(): boolean {
    return this.problem !== null;
  }

  #fail(problem = 'the body is not a multipart form in its plain form'): void {
    this.problem ??= problem;
  }

  #drop(bytes: number): void {
    this.#held = this.#held.subarray(bytes);
  }

  /** @returns false if more bytes are needed. */
  #step(): boolean {
    switch (this.#state) {
      case 'start':
        return this.#readStart();
      case 'delimiter':
        return this.#readDelimiter();
      case 'header':
        return this.#readHeader();
      case 'content':
        return this.#readContent();
      default:
        return this.#readEnd();
    }
  }

  #readStart(): boolean {
    const { length } = this.#delimiter;
    if (this.#held.length < length) return false;
    if (!this.#held.subarray(0, length).equals(this.#delimiter)) this.#fail();
    this.#drop(length);
    this.#state = 'delimiter';
    return true;
  }

  /** What follows the boundary: another part, or the end. */
  #readDelimiter(): boolean {
    if (this.#held.length < 2) return false;
    const next = this.#held.toString('latin1', 0, 2);
    if (next === LINE_END) {
      // It stays, as the beginning of the end of an empty header.
      this.#state = 'header';
      if (++this.#parts > MAX_PARTS) this.#fail('the form has too many parts');
    } else if (next === '--') {
      this.#drop(2);
      this.#state = 'end';
      this.isComplete = true;
    } else this.#fail();
    return true;
  }

  #readHeader(): boolean {
    const end = this.#held.subarray(0, MAX_PART_HEADER_BYTES).indexOf(END_OF_HEADER);
    if (end === -1) {
      if (this.#held.length >= MAX_PART_HEADER_BYTES) this.#fail();
      return false;
    }
    this.#readFields(this.#held.toString('latin1', LINE_END.length, Math.max(LINE_END.length, end)).split(LINE_END));
    this.#drop(end + END_OF_HEADER.length);
    this.#state = 'content';
    return true;
  }

  #readFields(lines: readonly string[]): void {
    const fields = new Map<string, string>();
    for (const line of lines) {
      const [, name = '', value = ''] = HEADER.exec(line) ?? [];
      // A line that continues, a repeated or an unknown header.
      if (name === '' || fields.has(name.toLowerCase())) this.#fail();
      fields.set(name.toLowerCase(), value.trim());
    }
    const parameters = DISPOSITION.exec(fields.get('content-disposition') ?? '')?.[1] ?? '';
    // In turn: the name of a file may look like a parameter.
    const read = Array.from(parameters.matchAll(PARAMETER), ([, key = '', value = '']) => ({ key, value }));
    const [named, ...more] = read.filter(({ key }) => /^name$/i.test(key)).map(({ value }) => value);
    if (named === undefined || more.length > 0 || !PLAIN_NAME.test(named)) {
      this.#fail();
      return;
    }
    this.#beginPart(named, fields, read.length > 1);
  }

  #beginPart(named: string, fields: ReadonlyMap<string, string>, isFile: boolean): void {
    const field = plainKey(named.trim());
    this.#value = null;
    if (field === DOCUMENT) this.isUncheckable = true;
    if (!FIELDS.has(field)) return;
    const type = fields.get('content-type');
    const isPlain = !isFile && !fields.has('content-transfer-encoding') && (type === undefined || IS_TEXT.test(type));
    if (named !== field || !isPlain)
      this.#fail(`the field ${field} must be plain text, with its name in its own letters`);
    if (field !== 'models[]' && this.#seen.has(field)) this.#fail(`the field ${field} must not be repeated`);
    this.#seen.add(field);
    this.#value = Buffer.alloc(0);
  }

  #readContent(): boolean {
    const found = this.#held.indexOf(this.#delimiter);
    if (found === -1) {
      // A delimiter may have begun, and its line end precedes it.
      const read = this.#held.length - this.#delimiter.length - LINE_END.length;
      if (read > 0) this.#take(read);
      return false;
    }
    // Some parsers take a delimiter without a line end, or with another one.
    if (found < LINE_END.length || this.#held.toString('latin1', found - LINE_END.length, found) !== LINE_END) {
      this.#fail();
      return false;
    }
    this.#take(found - LINE_END.length);
    this.#drop(LINE_END.length + this.#delimiter.length);
    this.#endPart();
    this.#state = 'delimiter';
    return true;
  }

  #take(bytes: number): void {
    if (this.#value !== null) {
      this.#value = Buffer.concat([this.#value, this.#held.subarray(0, bytes)]);
      if (this.#value.length > MAX_NAME_BYTES) this.#fail('the name of a model in the form is too long');
    }
    this.#drop(bytes);
  }

  #endPart(): void {
    if (this.#value === null) return;
    if (this.names.length >= MAX_NAMES) this.#fail('the form names too many models');
    this.names.push(this.#value.toString());
    this.#value = null;
  }

  /** Nothing may follow but a line end. */
  #readEnd(): boolean {
    if (!LINE_END.startsWith(this.#held.toString('latin1', 0, 3))) this.#fail();
    return false;
  }
}
