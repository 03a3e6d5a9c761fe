/**
 * Where a chain goes on in a file that is there already. Somebody who can write to the folder can put another file there. So nothing
 * that a file says is believed without proof: it must end with the line that this process wrote last, or, at the start, its
 * lines must lead back to the line that the database knows.
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
  type Watch,
} from './tail.js';

/** What is wrong with what is there; each is the action of the marker that is written. */
export type Doubt = 'audit.file_replaced' | 'audit.file_cut';

export interface Continuation {
  /** A torn line counted. */
  head: Head;
  seq: number | null;
  /** The last line of this very file needs a newline first. */
  isTorn: boolean;
  doubt: Doubt | null;
}

/** What is there cannot be an audit file, and must not be written into. */
export class NotAnAuditFile extends Error {
  override name = 'NotAnAuditFile';
}

// A minute of traffic lies behind the last anchor. What lies further back proves nothing soon enough.
const MOST_PROVED_BYTES = 256 * 1024 * 1024;

export interface Place {
  path: string;
  /** Bytes of the file at the path; 0 for one that is new, or is no file on a disk. */
  size: number;
  watched: Watch;
}

/** In a process that knows where its chain ends. */
export async function continueBehind(own: Tail, { path, size, watched }: Place): Promise<Continuation> {
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const tail = await tailOf(path, watched);
  const isOurs = tail?.head.digest === own.head.digest && tail.head.line === own.head.line;
  if (isOurs) return { ...own, isTorn: tail.isTorn, doubt: null };
  // A write that failed may have torn the first line of a new file.
  const only = tail ? null : await onlyLineOf(path, watched);
  if (only && digestOfLine(only.bytes) === own.head.digest) return { ...own, isTorn: only.isTorn, doubt: null };
  return doubted(own, tail, path);
}

/** In a process that has just started. @throws {NotAnAuditFile} */
export async function continueAtStart(anchor: Anchor | null, place: Place): Promise<Continuation> {
  const { path, size, watched } = place;
  const tail = size > 0 ? await tailOf(path, watched) : null;
  const rotations = await tailsOf(await watched(rotationsOf(path)), watched);
  if (!anchor) {
    // The database has never heard of this chain: there is nothing to prove it by.
    const before = furthest(rotations.map((rotation) => rotation.tail));
    if (size === 0) return { ...before, isTorn: false, doubt: null };
    const found = tail ?? (await tornBehind(before, path, watched));
    if (!found) throw notAnAuditFile(path);
    return { ...found, doubt: null };
  }
  const files = [...(tail ? [{ path, tail }] : []), ...rotations];
  if (tail && (await leadsTo(anchor, { path, tail }, files, watched))) return { ...tail, doubt: null };
  const proved: Tail[] = [{ head: { line: anchor.line, digest: anchor.head }, seq: anchor.seq, isTorn: false }];
  for (const rotation of rotations) {
    if (rotation.tail.head.line > anchor.line && (await leadsTo(anchor, rotation, files, watched)))
      proved.push(rotation.tail);
  }
  const own = furthest(proved);
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const torn = tail ? null : await tornBehind(own, path, watched);
  return torn ? { ...torn, doubt: null } : doubted(own, tail, path);
}

/** The chain goes on behind what is known, in the file that is there: what it holds stays as evidence. */
function doubted(own: Tail, tail: Tail | null, path: string): Continuation {
  if (!tail) throw notAnAuditFile(path);
  const doubt = tail.head.line < own.head.line ? 'audit.file_cut' : 'audit.file_replaced';
  return { ...own, isTorn: tail.isTorn, doubt };
}

const notAnAuditFile = (path: string) =>
  new NotAnAuditFile(`${path} is not an audit file of llmp: move it away, or name another file`);

/**
 * A crash may have torn the first line of a new file.
 *
 * @param own what that line must follow on.
 * @returns null where the file holds anything else.
 */
async function tornBehind(own: Tail, path: string, watched: Watch): Promise<Tail | null> {
  const only = await onlyLineOf(path, watched);
  const beginning = new Chain(own.head).begin('');
  const found = only?.bytes.toString('latin1') ?? '';
  if (!only || !(found.startsWith(beginning) || beginning.startsWith(found))) return null;
  return { head: { line: own.head.line + 1, digest: digestOfLine(only.bytes) }, seq: own.seq, isTorn: only.isTorn };
}

/** @returns null for a file with more lines than one. */
async function onlyLineOf(path: string, watched: Watch): Promise<LineFromEnd | null> {
  let only: LineFromEnd | null = null;
  for await (const line of linesFromEnd(path, watched)) {
    if (only) return null;
    only = line;
  }
  return only;
}

interface FileWithTail {
  path: string;
  tail: Tail;
}

async function tailsOf(paths: readonly string[], watched: Watch): Promise<FileWithTail[]> {
  const found: FileWithTail[] = [];
  for (const path of paths) {
    const tail = await tailOf(path, watched).catch(() => null); // A folder or a pipe under such a name says nothing.
    if (tail) found.push({ path, tail });
  }
  return found;
}

function furthest(tails: readonly Tail[]): Tail {
  const start: Tail = { head: BEGINNING, seq: null, isTorn: false };
  return tails.reduce((best, each) => (each.head.line > best.head.line ? each : best), start);
}

/** Whether the lines of a file, and of those before it, lead back to an anchor, each by the digest that the next one holds. */
async function leadsTo(
  anchor: Anchor,
  from: FileWithTail,
  files: readonly FileWithTail[],
  watched: Watch,
): Promise<boolean> {
  let at = from.tail.head.line;
  if (at < anchor.line) return false;
  // Null behind a line that was torn before it said what it follows on.
  let digest: string | null = from.tail.head.digest;
  let bytesLeft = MOST_PROVED_BYTES;
  const left = new Set(files);
  for (let file: FileWithTail | undefined = from; file;) {
    left.delete(file);
    for await (const { bytes } of linesFromEnd(file.path, watched)) {
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

/** A write that failed may have put some of its bytes into the file. */
export interface Attempt {
  bytes: Buffer;
  /** The bytes that were in the file before it. */
  size: number;
}

/**
 * What of an attempt is in a file: all that stands behind what was there before, if it is the beginning of the attempt.
 * @returns null where something else stands there.
 */
export async function takenOf({ bytes, size }: Attempt, path: string, watched: Watch): Promise<Buffer | null> {
  const file = await watched(openRegular(path));
  try {
    const { size: now } = await watched(file.stat());
    const length = now - size;
    if (length < 0 || length > bytes.length) return null;
    const found = Buffer.alloc(length);
    const { bytesRead } = await watched(file.read(found, 0, length, size));
    return bytesRead === length && found.equals(bytes.subarray(0, length)) ? found : null;
  } finally {
    await file.close();
  }
}

/** Where a chain is when these bytes were put behind it, of which the last line may be torn. */
export function behind(own: Tail, bytes: Buffer): Tail {
  let { head, seq } = own;
  for (const line of linesOf(bytes)) {
    head = { line: head.line + 1, digest: digestOfLine(line) };
    seq = linkOf(line)?.seq ?? seq;
  }
  return { head, seq, isTorn: bytes.length > 0 && bytes.at(-1) !== NEWLINE };
}
