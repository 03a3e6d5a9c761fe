/**
 * Finding the line from which a chain continues in an existing file. Anyone with write access to the folder can put another file
 * there, so the content of a file is not trusted without proof: it must end with the line that this process wrote last or, at
 * startup, its lines must lead back to the line that the database has anchored.
 */
import type { RecordStore } from '../../core/ports.js';
import type { Anchor } from './anchors.js';
import { BEGINNING, Chain, digestOfLine, type Head, linkOf, type Tail, tornLinkOf } from './chain.js';
import type { Timed } from './disk.js';
import { fieldsOfRecord, type MarkerAction, type RecordLine, recordLineOf } from './fields.js';
import { rotationsOf } from './rotations.js';
import { type FileTail, linesFromEnd, tailOf, untimed } from './lines.js';

export interface Continuation extends FileTail {
  /** What is wrong with the file; also the action of the marker that is written. */
  doubt: Exclude<MarkerAction, 'audit.database_behind'> | null;
}

/** The file at the path is not an audit file and must not be written to. */
export class NotAnAuditFile extends Error {
  override name = 'NotAnAuditFile';
}

export interface FileLocation {
  path: string;
  /** Size of the file at the path; 0 for a new file, a pipe or a device. */
  size: number;
  timed: Timed;
}

/** For a process that knows the end of its chain. @throws {NotAnAuditFile} */
export async function continueAfter(own: Tail, { path, size, timed }: FileLocation): Promise<Continuation> {
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const tail = await tailOf(path, timed);
  const isOurs = tail?.head.digest === own.head.digest && tail.head.line === own.head.line;
  return isOurs ? { ...own, isTorn: tail.isTorn, doubt: null } : continueWithDoubt(own, tail, path);
}

/**
 * For a process that has just started.
 *
 * @param anchor null: the database does not know the chain, and nothing can be proved.
 * @throws {NotAnAuditFile}
 */
export async function continueAtStart(anchor: Anchor | null, location: FileLocation): Promise<Continuation> {
  const { path, size, timed } = location;
  const files = new ChainFiles(path, timed);
  const isOurs = async ({ head }: Tail) => anchor === null || (await leadsTo(anchor, head, files));
  const tail = size > 0 ? await tailOf(path, timed) : null;
  if (tail && (await isOurs(tail))) return { ...tail, doubt: null };
  let own: Tail = anchor
    ? { head: { line: anchor.line, digest: anchor.head }, seq: anchor.seq }
    : { head: BEGINNING, seq: null };
  // The file may have been rotated since it was anchored.
  for (const { tail: rotated } of await files.rotated())
    if (rotated.head.line > own.head.line && (await isOurs(rotated))) own = rotated;
  if (size === 0) return { ...own, isTorn: false, doubt: null };
  const torn = tail ? null : await tornAfter(own, path, timed);
  return torn ? { ...torn, doubt: null } : continueWithDoubt(own, tail, path);
}

/** Continues the chain from the last known line, in the file at the path. Its content stays as evidence. */
function continueWithDoubt(own: Tail, tail: FileTail | null, path: string): Continuation {
  if (!tail)
    throw new NotAnAuditFile(
      `${path} is not an audit file of llmp: move it to another location, or configure another path`,
    );
  const doubt = tail.head.line < own.head.line ? 'audit.file_cut' : 'audit.file_replaced';
  return { ...own, isTorn: tail.isTorn, doubt };
}

/**
 * Checks for a new file with an incomplete first line, left by a crash.
 *
 * @param own what that line must follow.
 * @returns null if the file contains anything else.
 */
async function tornAfter(own: Tail, path: string, timed: Timed): Promise<FileTail | null> {
  const lines = linesFromEnd(path, timed);
  const only = await lines.next();
  const isAlone = (await lines.next()).done === true;
  await lines.return(undefined);
  if (only.done || !isAlone) return null;
  const { bytes, isTorn } = only.value;
  const beginning = new Chain(own.head).begin('');
  const found = bytes.toString('latin1');
  if (!found.startsWith(beginning) && !beginning.startsWith(found)) return null;
  return { head: { line: own.head.line + 1, digest: digestOfLine(bytes) }, seq: own.seq, isTorn };
}

interface FileWithTail {
  path: string;
  tail: FileTail;
}

/** The files that a chain may be in. */
class ChainFiles {
  readonly path: string;
  readonly timed: Timed;
  #rotated: FileWithTail[] | null = null;

  constructor(path: string, timed: Timed) {
    this.path = path;
    this.timed = timed;
  }

  async rotated(): Promise<FileWithTail[]> {
    return (this.#rotated ??= await this.#withTails(await this.timed(rotationsOf(this.path))));
  }

  /** @param end its digest is null if only its number is known. */
  async endingWith(end: { line: number; digest: string | null }): Promise<FileWithTail | null> {
    const isEnd = ({ tail: { head } }: FileWithTail) =>
      head.line === end.line && (end.digest === null || head.digest === end.digest);
    return (await this.#withTails([this.path])).find(isEnd) ?? (await this.rotated()).find(isEnd) ?? null;
  }

  async #withTails(paths: readonly string[]): Promise<FileWithTail[]> {
    const found: FileWithTail[] = [];
    for (const path of paths) {
      // A folder or a pipe with such a name is skipped.
      const tail = await tailOf(path, this.timed).catch(() => null);
      if (tail) found.push({ path, tail });
    }
    return found;
  }
}

/** Whether the lines before the end of a chain lead back to an anchor. */
async function leadsTo(anchor: Anchor, end: Head, files: ChainFiles): Promise<boolean> {
  if (end.line < anchor.line) return false;
  for await (const { line, digest } of linesBack(end, files)) if (line === anchor.line) return digest === anchor.head;
  return false;
}

interface ChainedLine extends Head {
  /** Null if no file has the line. */
  bytes: Buffer | null;
}

// Up to a minute of traffic follows the last anchor. Reading more than this takes too long.
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * The lines of a chain, the last one first. Each is the one that the line after it names. The last one that is returned may be
 * missing in the files.
 */
async function* linesBack(end: Head, files: ChainFiles): AsyncGenerator<ChainedLine> {
  // Null after a line that was cut before its `prev`.
  let next: { line: number; digest: string | null } = end;
  let bytesLeft = MAX_BYTES;
  for (let file = await files.endingWith(next); file; file = await files.endingWith(next)) {
    for await (const { bytes } of linesFromEnd(file.path, files.timed)) {
      const digest = digestOfLine(bytes);
      const link = linkOf(bytes) ?? tornLinkOf(bytes);
      if ((next.digest !== null && digest !== next.digest) || (link && link.line !== next.line)) return;
      yield { line: next.line, digest, bytes };
      next = { line: next.line - 1, digest: link?.prev ?? null };
      if ((bytesLeft -= bytes.length) < 0) return;
    }
  }
  if (next.digest !== null) yield { line: next.line, digest: next.digest, bytes: null };
}

const RECORDS_PER_QUERY = 500;

/**
 * Whether the records that were copied to a file since its anchor are those of the database. They are not when the database was
 * restored from a backup, when a replica took over that lacks its last records, or when someone has forged the end of the file. The
 * anchor is in the same database, so that it has the records up to there.
 */
export async function agreesSince(
  anchor: Anchor | null,
  end: Head,
  path: string,
  store: Pick<RecordStore, 'recordsAfter'>,
): Promise<boolean> {
  let lines: RecordLine[] = [];
  const agree = async () => {
    const first = lines.reduce((least, { seq }) => Math.min(least, seq), Infinity);
    const records = lines.length === 0 ? [] : await store.recordsAfter(first - 1, RECORDS_PER_QUERY);
    const bySeq = new Map(records.map((record) => [record.seq, fieldsOfRecord(record)]));
    return lines.every(({ seq, fields }) => bySeq.get(seq) === fields);
  };
  // The copy continued after this record: earlier lines of later records are no longer in the database.
  let continuedAfter = Infinity;
  for await (const { line, bytes } of linesBack(end, new ChainFiles(path, untimed))) {
    const found = bytes && recordLineOf(bytes);
    if (!found || found.seq > continuedAfter) continue;
    if (found.isMarker) {
      continuedAfter = found.seq;
      continue;
    }
    lines.push(found);
    // The last record is compared in any case.
    if (line <= (anchor?.line ?? 0)) break;
    if (lines.length < RECORDS_PER_QUERY) continue;
    if (!(await agree())) return false;
    lines = [];
  }
  return agree();
}
