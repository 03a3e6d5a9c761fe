/**
 * Hash chain of an audit file. Every line is a JSON object that begins with its number, `line`, and `prev`, the SHA-256 of the
 * previous line's bytes without the newline. To change a line, all lines after it would have to change. The number distinguishes a
 * removed line from a changed, inserted or moved one.
 */
import { hash } from 'node:crypto';

/** The last line of a chain. */
export interface Head {
  /** 1, 2, 3 …; 0 for an empty chain. */
  line: number;
  /** SHA-256, in hex. */
  digest: string;
}

/** The end of a chain. */
export interface Tail {
  /** Includes a line that a crash left incomplete. */
  head: Head;
  /** Sequence number of the last record; null in a file without records. */
  seq: number | null;
}

export const BEGINNING: Head = { line: 0, digest: '0'.repeat(64) };

export const digestOfLine = (bytes: Buffer | string): string => hash('sha256', bytes, 'hex');

/** Appends lines to a head. */
export class Chain {
  line: number;
  digest: string;

  constructor({ line, digest }: Head) {
    this.line = line;
    this.digest = digest;
  }

  get head(): Head {
    return { line: this.line, digest: this.digest };
  }

  /** @param fields a JSON object without its opening brace. @returns the line without its newline. */
  begin(fields: string): string {
    return `{"line":${this.line + 1},"prev":"${this.digest}",${fields}`;
  }

  /** @param bytes the result of `begin`, exactly as written to the file. */
  take(bytes: Buffer | string): void {
    this.line += 1;
    this.digest = digestOfLine(bytes);
  }
}

/** Chains lines to a head. Each line ends with a newline. */
export function chainLines(fields: readonly string[], head: Head): { bytes: Buffer; head: Head } {
  const chain = new Chain(head);
  let text = '';
  for (const each of fields) {
    const line = chain.begin(each);
    chain.take(line);
    text += `${line}\n`;
  }
  return { bytes: Buffer.from(text), head: chain.head };
}

const LINKED = /^\{"line":\d+,"prev":"[0-9a-f]{64}",/;

/** The fields of a line: a JSON object without its opening brace. */
export const withoutLink = (line: string): string => line.replace(LINKED, '');

/** The fields of lines that were chained before, in order to chain them again. */
export function fieldsOf(bytes: Buffer): string[] {
  const lines = bytes.toString().split('\n');
  return lines.filter((line) => line !== '').map(withoutLink);
}

/** The position of a line in its chain. `linkOf` returns null for a line that is not part of a chain. */
export interface Link {
  line: number;
  prev: string;
  seq: number | null;
}

const TORN = /^\{"line":(\d{1,15}),"prev":"([0-9a-f]{64})"/;

/** The link of an incomplete line: it may have been cut after its link. */
export function tornLinkOf(bytes: Buffer): Pick<Link, 'line' | 'prev'> | null {
  const [, line, prev] = TORN.exec(bytes.subarray(0, 120).toString('latin1')) ?? [];
  return line !== undefined && prev !== undefined ? { line: Number(line), prev } : null;
}

export function linkOf(bytes: Buffer): Link | null {
  try {
    const { line, prev, seq = null } = JSON.parse(bytes.toString()) as Record<string, unknown>;
    const isLink = Number.isSafeInteger(line) && typeof prev === 'string';
    return isLink ? { line: line as number, prev, seq: typeof seq === 'number' ? seq : null } : null;
  } catch {
    return null;
  }
}
