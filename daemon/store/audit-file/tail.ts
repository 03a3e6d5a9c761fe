/** Where an audit file ends, so that it can be continued, in this process or in another. */
import { type FileHandle, open } from 'node:fs/promises';
import { digestOfLine, type Head, linkOf } from './chain.js';

export interface Tail {
  /** With a torn line counted, which must be ended before anything is put behind it. */
  head: Head;
  /** The place of the last record. */
  seq: number | null;
  isTorn: boolean;
}

const PIECE_BYTES = 64 * 1024;
// Far longer than a line can be. What is not found in it is no file of ours.
const MOST_BYTES = 16 * 1024 * 1024;

/** @returns null for a file without any line of a chain. */
export async function tailOf(path: string): Promise<Tail | null> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return await readBackwards(file, size);
  } finally {
    await file.close();
  }
}

/** @returns the number of the first line that has one; null where there is none near the beginning. */
export async function firstLineOf(path: string): Promise<number | null> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, 0);
    for (const [index, bytes] of linesOf(buffer.subarray(0, bytesRead)).entries()) {
      const link = linkOf(bytes);
      if (link) return link.line - index;
    }
    return null;
  } finally {
    await file.close();
  }
}

async function readBackwards(file: FileHandle, size: number): Promise<Tail | null> {
  let end = Buffer.alloc(0);
  for (let at = size; at > 0 && end.length < MOST_BYTES;) {
    const length = Math.min(PIECE_BYTES, at);
    const piece = Buffer.alloc(length);
    const { bytesRead } = await file.read(piece, 0, length, (at -= length));
    end = Buffer.concat([piece.subarray(0, bytesRead), end]);
    const tail = tailIn(end, at === 0);
    if (tail) return tail;
  }
  return null;
}

/** @param isWhole whether it begins where the file does, not in the middle of a line. */
function tailIn(end: Buffer, isWhole: boolean): Tail | null {
  const lines = linesOf(end);
  if (!isWhole) lines.shift();
  const isTorn = end.length > 0 && end.at(-1) !== NEWLINE;
  for (let behind = 0; behind < lines.length; behind++) {
    // A torn line has no number, and still is a line.
    const link = linkOf(lines.at(-1 - behind) ?? Buffer.alloc(0));
    const last = lines.at(-1);
    if (link && last) return { head: { line: link.line + behind, digest: digestOfLine(last) }, seq: link.seq, isTorn };
  }
  return null;
}

export const NEWLINE = 10;

/** Without their newlines; the last may have had none. */
export function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
    lines.push(bytes.subarray(from, at));
    from = at + 1;
  }
  if (from < bytes.length) lines.push(bytes.subarray(from));
  return lines;
}
