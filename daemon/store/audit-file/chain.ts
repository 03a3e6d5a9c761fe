/**
 * The chain of an audit file: every line is a JSON object that begins with its number, `line`, and `prev`, the SHA-256 of the
 * bytes of the line before it without the newline. Whoever changes a line would have to change all behind it; the number tells
 * a line that was removed from one that was changed, inserted or moved.
 */
import { hash } from 'node:crypto';

/** How far a chain reaches: its last line. */
export interface Head {
  /** 1, 2, 3 …; 0 before the first. */
  line: number;
  /** SHA-256 in hex. */
  digest: string;
}

/** A head that is noted where whoever can write to the file cannot. */
export interface Anchor {
  line: number;
  head: string;
  /** The place of the record in that line; null in a file that holds none. */
  seq: number | null;
  atMs: number;
}

export interface AnchorStore {
  /** @param chain the absolute path of the file it ends with, on this machine. */
  last(chain: string): Promise<Anchor | null>;
  keep(chain: string, anchor: Anchor): Promise<void>;
  /** Forgets the anchors of lines before that line. */
  drop(chain: string, beforeLine: number): Promise<void>;
  /** @param back how many newer ones there are; 0: the newest. @returns null where there are not that many. */
  newest(chain: string, back: number): Promise<Anchor | null>;
}

/**
 * The last lines of the files that we put aside ourselves are anchored once more, as a chain of this name. They alone say which lines are
 * gone by our own rotation: what the files in the folder say of that may have been forged.
 * @param chain the absolute path of the file.
 */
export const endsOf = (chain: string): string => `${chain}:ends`;

export const BEGINNING: Head = { line: 0, digest: '0'.repeat(64) };

export const digestOfLine = (bytes: Buffer | string): string => hash('sha256', bytes, 'hex');

/** Puts lines behind a head. */
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

  /** @param fields a JSON object without its first brace. @returns the line without its newline. */
  begin(fields: string): string {
    return `{"line":${this.line + 1},"prev":"${this.digest}",${fields}`;
  }

  /** @param bytes what `begin` gave, as it will stand in the file. */
  take(bytes: Buffer | string): void {
    this.line += 1;
    this.digest = digestOfLine(bytes);
  }
}

/** Lines, each with its newline, behind a head. */
export function chained(fields: readonly string[], head: Head): { bytes: Buffer; head: Head } {
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

/** The fields of lines that were chained before, to be chained anew. */
export function fieldsOf(bytes: Buffer): string[] {
  const lines = bytes.toString().split('\n');
  return lines.filter((line) => line !== '').map((line) => line.replace(LINKED, ''));
}

/** What a line says of itself; null for what is no line of a chain. */
export interface Link {
  line: number;
  prev: string;
  seq: number | null;
}

const TORN = /^\{"line":(\d{1,15}),"prev":"([0-9a-f]{64})"/;

/** What a line that was torn still says: it may have been torn behind its link. */
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
