/**
 * Finding the line from which a chain continues in an existing file. Anyone with write access to the folder can put another file
 * there, so the content of a file is not trusted without proof: it must end with the line that this process wrote last or, at
 * startup, its lines must lead back to the line that the database has anchored.
 */
import { type Anchor, BEGINNING, Chain, digestOfLine, type Head, linkOf, tornLinkOf } from './chain.js';
import { rotationsOf } from './rotations.js';
import {
  type LineFromEnd,
  linesFromEnd,
  linesOf,
  NEWLINE,
  openRegular,
  type Tail,
  tailOf,
  type Timed,
} from './tail.js';

/** What is wrong with the file; also the action of the marker that is written. */
export type TamperingAction = 'audit.file_replaced' | 'audit.file_cut';

export interface Continuation {
  /** Includes an incomplete last line. */
  head: Head;
  seq: number | null;
  /** The last line of the current file needs a newline first. */
  isTorn: boolean;
  doubt: TamperingAction | null;
}

/** The file at the path is not an audit file and must not be written to. */
export class NotAnAuditFile extends Error {
  override name = 'NotAnAuditFile';
}

// Up to a minute of traffic follows the last anchor. Proving more than this takes too long.
const MAX_PROVED_BYTES = 256 * 1024 * 1024;

export interface FileLocation {
  path: string;
  /** Size of the file at the path; 0 for a new file, a pipe or a device. */
  size: number;
  timed: Timed;
}

/** For a process that knows the end of its chain. */
export async function continueAfter(own: Tail, { path, size, timed }: FileLocation): Promise<Continuation> {
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const tail = await tailOf(path, timed);
  const isOurs = tail?.head.digest === own.head.digest && tail.head.line === own.head.line;
  if (isOurs) return { ...own, isTorn: tail.isTorn, doubt: null };
  // A failed write may have left an incomplete first line in a new file.
  const only = tail ? null : await onlyLineOf(path, timed);
  if (only && digestOfLine(only.bytes) === own.head.digest) return { ...own, isTorn: only.isTorn, doubt: null };
  return continueWithDoubt(own, tail, path);
}

/** For a process that has just started. @throws {NotAnAuditFile} */
export async function continueAtStart(anchor: Anchor | null, location: FileLocation): Promise<Continuation> {
  const { path, size, timed } = location;
  const tail = size > 0 ? await tailOf(path, timed) : null;
  const rotations = await tailsOf(await timed(rotationsOf(path)), timed);
  if (!anchor) {
    // The database has no anchor of this chain, so nothing can be proved.
    const before = furthest(rotations.map((rotation) => rotation.tail));
    if (size === 0) return { ...before, isTorn: false, doubt: null };
    const found = tail ?? (await tornAfter(before, path, timed));
    if (!found) throw notAnAuditFile(path);
    return { ...found, doubt: null };
  }
  const files = [...(tail ? [{ path, tail }] : []), ...rotations];
  if (tail && (await leadsTo(anchor, { path, tail }, files, timed))) return { ...tail, doubt: null };
  const proved: Tail[] = [{ head: { line: anchor.line, digest: anchor.head }, seq: anchor.seq, isTorn: false }];
  for (const rotation of rotations) {
    if (rotation.tail.head.line > anchor.line && (await leadsTo(anchor, rotation, files, timed)))
      proved.push(rotation.tail);
  }
  const own = furthest(proved);
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const torn = tail ? null : await tornAfter(own, path, timed);
  return torn ? { ...torn, doubt: null } : continueWithDoubt(own, tail, path);
}

/** Continues the chain from the last known line, in the file at the path. Its content stays as evidence. */
function continueWithDoubt(own: Tail, tail: Tail | null, path: string): Continuation {
  if (!tail) throw notAnAuditFile(path);
  const doubt = tail.head.line < own.head.line ? 'audit.file_cut' : 'audit.file_replaced';
  return { ...own, isTorn: tail.isTorn, doubt };
}

const notAnAuditFile = (path: string) =>
  new NotAnAuditFile(`${path} is not an audit file of llmp: move it to another location, or configure another path`);

/**
 * Checks for a new file with an incomplete first line, left by a crash.
 *
 * @param own what that line must follow.
 * @returns null if the file contains anything else.
 */
async function tornAfter(own: Tail, path: string, timed: Timed): Promise<Tail | null> {
  const only = await onlyLineOf(path, timed);
  const beginning = new Chain(own.head).begin('');
  const found = only?.bytes.toString('latin1') ?? '';
  if (!only || !(found.startsWith(beginning) || beginning.startsWith(found))) return null;
  return { head: { line: own.head.line + 1, digest: digestOfLine(only.bytes) }, seq: own.seq, isTorn: only.isTorn };
}

/** @returns null for a file with more than one line. */
async function onlyLineOf(path: string, timed: Timed): Promise<LineFromEnd | null> {
  let only: LineFromEnd | null = null;
  for await (const line of linesFromEnd(path, timed)) {
    if (only) return null;
    only = line;
  }
  return only;
}

interface FileWithTail {
  path: string;
  tail: Tail;
}

async function tailsOf(paths: readonly string[], timed: Timed): Promise<FileWithTail[]> {
  const found: FileWithTail[] = [];
  for (const path of paths) {
    const tail = await tailOf(path, timed).catch(() => null); // A folder or a pipe with such a name is skipped.
    if (tail) found.push({ path, tail });
  }
  return found;
}

function furthest(tails: readonly Tail[]): Tail {
  const start: Tail = { head: BEGINNING, seq: null, isTorn: false };
  return tails.reduce((best, each) => (each.head.line > best.head.line ? each : best), start);
}

/** Whether the lines of a file, and of the files before it, lead back to an anchor, each by the digest in the next line. */
async function leadsTo(
  anchor: Anchor,
  from: FileWithTail,
  files: readonly FileWithTail[],
  timed: Timed,
): Promise<boolean> {
  let at = from.tail.head.line;
  if (at < anchor.line) return false;
  // Null after a line that was cut before its `prev`.
  let digest: string | null = from.tail.head.digest;
  let bytesLeft = MAX_PROVED_BYTES;
  const left = new Set(files);
  for (let file: FileWithTail | undefined = from; file;) {
    left.delete(file);
    for await (const { bytes } of linesFromEnd(file.path, timed)) {
      if (digest !== null && digestOfLine(bytes) !== digest) return false;
      if (at === anchor.line) return digestOfLine(bytes) === anchor.head;
      const link = linkOf(bytes) ?? tornLinkOf(bytes);
      if (link && link.line !== at) return false;
      digest = link?.prev ?? null;
      at -= 1;
      if ((bytesLeft -= bytes.length) < 0) return false;
    }
    if (at === anchor.line && digest !== null) return digest === anchor.head;
    const wanted: { line: number; digest: string | null } = { line: at, digest };
    file = [...left].find(
      ({ tail: { head } }) => head.line === wanted.line && (wanted.digest === null || head.digest === wanted.digest),
    );
  }
  return false;
}

/** A failed write, of which some bytes may be in the file. */
export interface FailedWrite {
  bytes: Buffer;
  /** Size of the file before the write. */
  size: number;
}

/**
 * The part of a failed write that is in a file.
 *
 * @returns null if the file has something else after its previous content.
 */
export async function writtenPart({ bytes, size }: FailedWrite, path: string, timed: Timed): Promise<Buffer | null> {
  const file = await timed(openRegular(path));
  try {
    const { size: now } = await timed(file.stat());
    const length = now - size;
    if (length < 0 || length > bytes.length) return null;
    const found = Buffer.alloc(length);
    const { bytesRead } = await timed(file.read(found, 0, length, size));
    return bytesRead === length && found.equals(bytes.subarray(0, length)) ? found : null;
  } finally {
    await file.close();
  }
}

/** The tail of a chain after these bytes are appended, of which the last line may be incomplete. */
export function tailAfter(own: Tail, bytes: Buffer): Tail {
  let { head, seq } = own;
  for (const line of linesOf(bytes)) {
    head = { line: head.line + 1, digest: digestOfLine(line) };
    seq = linkOf(line)?.seq ?? seq;
  }
  return { head, seq, isTorn: bytes.length > 0 && bytes.at(-1) !== NEWLINE };
}
