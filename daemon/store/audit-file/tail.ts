/** Where an audit file ends, so that it can be continued, in this process or in another. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { digestOfLine, type Head, linkOf } from './chain.js';

export interface Tail {
  /** With a torn line counted, which must be ended before anything is put behind it. */
  head: Head;
  /** The place of the last record. */
  seq: number | null;
  isTorn: boolean;
}

/** A path leads to a pipe, a device or a folder. To open a pipe without a writer would take forever. */
export class NotARegularFile extends Error {
  override name = 'NotARegularFile';
}

/** A line as it is met on the way back from the end of a file. */
export interface LineFromEnd {
  /** Without its newline. */
  bytes: Buffer;
  /** It is the last one, and has no newline. */
  isTorn: boolean;
}

const PIECE_BYTES = 64 * 1024;
// Far longer than a line can be. What is not found in it is no file of ours.
const MOST_BYTES = 16 * 1024 * 1024;

/** Waits for a call to the file system; may keep time. */
export type Watch = <T>(call: Promise<T>) => Promise<T>;
const unwatched: Watch = (call) => call;

/** @throws {NotARegularFile} */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new NotARegularFile(`${path} is not a regular file`);
}

/** The lines of a file, the last one first. Ends early before a line that is longer than a line can be. */
export async function* linesFromEnd(path: string, watched: Watch = unwatched): AsyncGenerator<LineFromEnd> {
  const file = await watched(openRegular(path));
  try {
    const { size } = await watched(file.stat());
    // Pieces of the line whose beginning is not found yet, the last piece first.
    let held: Buffer[] = [];
    let heldBytes = 0;
    let isEnd = true;
    const lineOf = (beginning: Buffer): Buffer => Buffer.concat([beginning, ...held.reverse()]);
    for (let at = size; at > 0;) {
      const length = Math.min(PIECE_BYTES, at);
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await watched(file.read(buffer, 0, length, (at -= length)));
      let end = bytesRead;
      while (end > 0) {
        const newline = buffer.lastIndexOf(NEWLINE, end - 1);
        if (newline === -1) break;
        const bytes = lineOf(buffer.subarray(newline + 1, end));
        // What stands behind the last newline is a line only if it is something.
        if (!isEnd || bytes.length > 0) yield { bytes, isTorn: isEnd };
        isEnd = false;
        held = [];
        heldBytes = 0;
        end = newline;
      }
      held.push(buffer.subarray(0, end));
      heldBytes += end;
      if (heldBytes > MOST_BYTES) return;
    }
    if (size > 0) yield { bytes: lineOf(Buffer.alloc(0)), isTorn: isEnd };
  } finally {
    await file.close();
  }
}

/** @returns null for a file without any line of a chain near its end. */
export async function tailOf(path: string, watched: Watch = unwatched): Promise<Tail | null> {
  let last: LineFromEnd | null = null;
  let behind = 0;
  let bytesSeen = 0;
  for await (const line of linesFromEnd(path, watched)) {
    last ??= line;
    // A torn line has no number, and still is a line.
    const link = linkOf(line.bytes);
    if (link) {
      const head = { line: link.line + behind, digest: digestOfLine(last.bytes) };
      return { head, seq: link.seq, isTorn: last.isTorn };
    }
    behind += 1;
    bytesSeen += line.bytes.length + 1;
    if (bytesSeen > MOST_BYTES) break;
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
