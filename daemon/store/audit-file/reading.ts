/** Reads the lines of an audit file from the beginning, plain or compressed with gzip, in bounded memory. */
import type { FileHandle } from 'node:fs/promises';
import { Readable, Transform, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { digestOfLine, linkOf, tornLinkOf } from './chain.js';
import { NEWLINE, openRegular } from './tail.js';

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

/** The file cannot be read to its end: it is damaged, or was made to exhaust its readers. */
export class Unreadable extends Error {
  override name = 'Unreadable';
}

// The longest possible line is much shorter: a path of 16 KB and a few hundred bytes.
const MAX_LINE_BYTES = 16 * 1024 * 1024;
// Lines contain digests, which do not compress: a real file shrinks about five times. Gzip can shrink data a thousand times.
const MAX_EXPANSION = 100;
const FREE_BYTES = 16 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;

/** @throws {Unreadable}, {NotARegularFile}, or an error of the file system. */
export async function* linesIn(file: string): AsyncGenerator<FoundLine> {
  const handle = await openRegular(file);
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
    for await (const piece of await contentOf(handle)) {
      let from = 0;
      for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
        yield found(piece.subarray(from, end));
        from = end + 1;
      }
      if (from === piece.length) continue;
      held.push(piece.subarray(from));
      heldBytes += piece.length - from;
      if (heldBytes > MAX_LINE_BYTES) throw new Unreadable(`${file} has a line of more than ${MAX_LINE_BYTES} bytes`);
    }
    if (heldBytes > 0) yield found(Buffer.alloc(0));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw code.startsWith('Z_') ? new Unreadable(`${file} is damaged: ${(error as Error).message}`) : error;
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

async function contentOf(handle: FileHandle): Promise<AsyncIterable<Buffer>> {
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
        done(new Unreadable(`the compressed content expands to more than ${MAX_EXPANSION} times its size`));
      else done(null, piece);
    },
  });
  return pipeline(stored, createGunzip(), bounded, () => undefined);
}
