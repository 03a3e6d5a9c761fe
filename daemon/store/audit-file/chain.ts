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

/** A head that is stored in the database, where someone with write access to the file cannot change it. */
export interface Anchor {
  line: number;
  head: string;
  /** Sequence number of the record in that line; null in a file without records. */
  seq: number | null;
  atMs: number;
}

export interface AnchorStore {
  /** @param chain absolute path of the chain's current file, on this machine. */
  last(chain: string): Promise<Anchor | null>;
  save(chain: string, anchor: Anchor): Promise<void>;
  /** Deletes the anchors of earlier lines. */
  deleteBefore(chain: string, beforeLine: number): Promise<void>;
  /** @param back how many newer anchors to skip; 0 returns the newest. @returns null if there are not enough. */
  newest(chain: string, back: number): Promise<Anchor | null>;
}

/**
 * Name of a second chain of anchors: the last lines of the files that llmp has rotated. Only these anchors prove which lines our
 * own rotation removed; what the files in the folder say about it may be forged.
 *
 * @param chain absolute path of the file.
 */
export const rotatedEndsOf = (chain: string): string => `${chain}:ends`;

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

/** The fields of lines that were chained before, in order to chain them again. */
export function fieldsOf(bytes: Buffer): string[] {
  const lines = bytes.toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => line.replace(LINKED, ''));
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
