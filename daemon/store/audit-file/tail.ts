/** Reads the end of an audit file, so that this or another process can continue it. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { digestOfLine, type Head, linkOf } from './chain.js';

export interface Tail {
  /** Includes an incomplete last line, which must be ended with a newline before anything is appended. */
  head: Head;
  /** Sequence number of the last record. */
  seq: number | null;
  isTorn: boolean;
}

/** The path is a pipe, a device or a folder. Opening a pipe without a writer would block forever. */
export class NotARegularFile extends Error {
  override name = 'NotARegularFile';
}

/** A line, read backwards from the end of a file. */
export interface LineFromEnd {
  /** Without its newline. */
  bytes: Buffer;
  /** The last line, without a newline. */
  isTorn: boolean;
}

const PIECE_BYTES = 64 * 1024;
// Far longer than any line. If no line is found within this size, it is not an audit file.
const MAX_BYTES = 16 * 1024 * 1024;

/** Waits for a file system call, possibly with a timeout. */
export type Timed = <T>(call: Promise<T>) => Promise<T>;
const untimed: Timed = (call) => call;

/** @throws {NotARegularFile} */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new NotARegularFile(`${path} is not a regular file`);
}

/** Reads the lines of a file backwards. Stops before a line that is too long to be one of ours. */
export async function* linesFromEnd(path: string, timed: Timed = untimed): AsyncGenerator<LineFromEnd> {
  const file = await timed(openRegular(path));
  try {
    const { size } = await timed(file.stat());
    // Chunks of the line whose beginning is not found yet, the last chunk first.
    let held: Buffer[] = [];
    let heldBytes = 0;
    let isEnd = true;
    const lineOf = (beginning: Buffer): Buffer => Buffer.concat([beginning, ...held.reverse()]);
    for (let at = size; at > 0;) {
      const length = Math.min(PIECE_BYTES, at);
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await timed(file.read(buffer, 0, length, (at -= length)));
      let end = bytesRead;
      while (end > 0) {
        const newline = buffer.lastIndexOf(NEWLINE, end - 1);
        if (newline === -1) break;
        const bytes = lineOf(buffer.subarray(newline + 1, end));
        // The text after the last newline is a line unless it is empty.
        if (!isEnd || bytes.length > 0) yield { bytes, isTorn: isEnd };
        isEnd = false;
        held = [];
        heldBytes = 0;
        end = newline;
      }
      held.push(buffer.subarray(0, end));
      heldBytes += end;
      if (heldBytes > MAX_BYTES) return;
    }
    if (size > 0) yield { bytes: lineOf(Buffer.alloc(0)), isTorn: isEnd };
  } finally {
    await file.close();
  }
}

/** @returns null if there is no line of a chain near the end of the file. */
export async function tailOf(path: string, timed: Timed = untimed): Promise<Tail | null> {
  let last: LineFromEnd | null = null;
  let tornLines = 0;
  let bytesSeen = 0;
  for await (const line of linesFromEnd(path, timed)) {
    last ??= line;
    // An incomplete line has no number but still counts.
    const link = linkOf(line.bytes);
    if (link) {
      const head = { line: link.line + tornLines, digest: digestOfLine(last.bytes) };
      return { head, seq: link.seq, isTorn: last.isTorn };
    }
    tornLines += 1;
    bytesSeen += line.bytes.length + 1;
    if (bytesSeen > MAX_BYTES) break;
  }
  return null;
}

export const NEWLINE = 10;

/** Splits into lines, without their newlines. The last line may have none. */
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
