/** Reads the lines of an audit file: from its beginning, plain or compressed with gzip, or from its end. In bounded memory. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable, Transform, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { digestOfLine, linkOf, type Tail, tornLinkOf } from './chain.js';
import type { Timed } from './disk.js';

/** The path is a pipe, a device or a folder. Opening a pipe without a writer would block forever. */
export class NotARegularFile extends Error {
  override name = 'NotARegularFile';
}

/** A file that cannot be read to its end: it is damaged, was made to exhaust its readers, or is not a file. */
export class Unreadable extends Error {
  readonly file: string;
  override name = 'Unreadable';

  constructor(file: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.file = file;
  }
}

const NEWLINE = 10;
// The longest possible line is much shorter: a path of 16 KB and a few hundred bytes.
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** @throws {NotARegularFile} */
async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new NotARegularFile(`${path} is not a regular file`);
}

/** A line of a file. */
export interface FoundLine {
  /** Its own line number; null if it is not part of a chain. */
  number: number | null;
  prev: string;
  digest: string;
  /** The link of an incomplete line that was cut after its link. */
  torn: { line: number; prev: string } | null;
  file: string;
  /** Line number in the file, from 1. */
  at: number;
  /** Without its newline. */
  bytes: Buffer;
}

// Lines contain digests, which do not compress: a real file shrinks about five times. Gzip can shrink data a thousand times.
const MAX_EXPANSION = 100;
const FREE_BYTES = 16 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;

/** @throws {Unreadable}, or an error of the file system. */
export async function* linesIn(file: string): AsyncGenerator<FoundLine> {
  const handle = await openRegular(file).catch((error: unknown) => {
    throw unreadableFrom(file, error);
  });
  let held: Buffer[] = [];
  let heldBytes = 0;
  let at = 0;
  const found = (end: Buffer): FoundLine => {
    const bytes = held.length === 0 ? end : Buffer.concat([...held, end]);
    held = [];
    heldBytes = 0;
    const link = linkOf(bytes);
    const torn = link ? null : tornLinkOf(bytes);
    return {
      number: link?.line ?? null,
      prev: link?.prev ?? '',
      digest: digestOfLine(bytes),
      torn,
      file,
      at: (at += 1),
      bytes,
    };
  };
  try {
    for await (const piece of await contentOf(file, handle)) {
      let from = 0;
      for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
        yield found(piece.subarray(from, end));
        from = end + 1;
      }
      if (from === piece.length) continue;
      held.push(piece.subarray(from));
      heldBytes += piece.length - from;
      if (heldBytes > MAX_LINE_BYTES)
        throw new Unreadable(file, `${file} has a line of more than ${MAX_LINE_BYTES} bytes`);
    }
    if (heldBytes > 0) yield found(Buffer.alloc(0));
  } catch (error) {
    throw unreadableFrom(file, error);
  } finally {
    await handle.close().catch(() => undefined);
  }
}

/** The number of the first line; null if no line near the beginning has a number. */
export async function firstLineOf(file: string): Promise<number | null> {
  let before = 0;
  let bytes = 0;
  for await (const line of linesIn(file)) {
    const number = line.number ?? line.torn?.line ?? null;
    if (number !== null) return number - before;
    before += 1;
    bytes += line.bytes.length + 1;
    if (bytes > PIECE_BYTES) break;
  }
  return null;
}

/** @returns the error itself if it says nothing about the content. */
function unreadableFrom(file: string, error: unknown): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code.startsWith('Z_')) return new Unreadable(file, `${file} is damaged: ${message}`, error);
  const isSomethingElse = error instanceof NotARegularFile || code === 'ENXIO' || code === 'ELOOP';
  return isSomethingElse ? new Unreadable(file, message, error) : error;
}

async function contentOf(file: string, handle: FileHandle): Promise<AsyncIterable<Buffer>> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  const isCompressed = bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  const { size } = await handle.stat();
  // Lines that are written meanwhile are read the next time.
  const stored =
    size === 0
      ? Readable.from([])
      : handle.createReadStream({ start: 0, end: size - 1, highWaterMark: PIECE_BYTES, autoClose: false });
  if (!isCompressed) return stored as AsyncIterable<Buffer>;
  const most = size * MAX_EXPANSION + FREE_BYTES;
  let total = 0;
  const bounded = new Transform({
    transform(piece: Buffer, _encoding, done) {
      total += piece.length;
      if (total > most)
        done(new Unreadable(file, `the compressed content expands to more than ${MAX_EXPANSION} times its size`));
      else done(null, piece);
    },
  });
  return pipeline(stored, createGunzip(), bounded, () => undefined);
}

/** The end of a file. */
export interface FileTail extends Tail {
  /** The last line has no newline, which it must get before anything is appended. */
  isTorn: boolean;
}

/** A line, read backwards from the end of a file. */
export interface LineFromEnd {
  /** Without its newline. */
  bytes: Buffer;
  /** The last line, without a newline. */
  isTorn: boolean;
}

const PIECE_FROM_END_BYTES = 64 * 1024;

export const untimed: Timed = (call) => call;

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
      const length = Math.min(PIECE_FROM_END_BYTES, at);
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
      if (heldBytes > MAX_LINE_BYTES) return;
    }
    if (size > 0) yield { bytes: lineOf(Buffer.alloc(0)), isTorn: isEnd };
  } finally {
    await file.close();
  }
}

/** @returns null if there is no line of a chain near the end of the file. */
export async function tailOf(path: string, timed: Timed = untimed): Promise<FileTail | null> {
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
    if (bytesSeen > MAX_LINE_BYTES) break;
  }
  return null;
}
