/**
 * Append-only audit file. Existing logging libraries lose records on exit and do not report a full disk, hence our own.
 *
 * **Checked writes.** A short write is continued, a failed write is reported, and lines count as written after fdatasync. After a
 * failure the file is opened again, and its end determines where the chain continues: a torn line is ended with a newline and stays
 * in the chain.
 *
 * **Hung disks.** A disk may neither complete nor refuse a write. No request waits for one. After `HUNG_MS` the file counts as
 * failing, and no other call is made until the pending one returns, because each call occupies one of the few threads that Node.js
 * has for files and for SQLite.
 *
 * **Moved files.** The path is checked before each batch. If another file or none is there (logrotate), or after SIGHUP, the lines
 * go to the file at the path, chained to the last line of the previous file.
 *
 * **Tampering.** A file that is not new and does not end where our chain does was replaced or changed by someone else. The chain
 * continues from our own last line, never from a foreign one. A marker in the chain records this, the last known line is anchored
 * at once, and the file counts as doubtful until the process ends: no one with write access to the folder can undo that.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import { lockInode, lockPath, PathInUse, withoutLinks } from '../lock.js';
import { type Anchor, BEGINNING, chainLines, type Head } from './chain.js';
import {
  type FailedWrite,
  tailAfter,
  type Continuation,
  continueAtStart,
  continueAfter,
  type TamperingAction,
  writtenPart,
} from './continuation.js';
import { fieldsOfMarker } from './marker.js';
import { rotate, rotationsOf } from './rotations.js';
import { NotARegularFile } from './tail.js';
import { writeAllSync, WriteFailed, writeWhole } from './writing.js';

export const HUNG_MS = 5_000;
const WATCH_EVERY_MS = 500;

export interface AuditFileOptions {
  /** Absolute path. */
  path: string;
  clock: Clock;
  log: Log;
  /** The last anchor of the chain, needed when no file shows it. May reject with `StoreUnavailable`. */
  lastAnchor: () => Promise<Anchor | null>;
  /** Null if another program rotates the file, or none. */
  rotation: { maxBytes: number; maxFiles: number } | null;
  /** Called before the file is rotated, while `head` is still its last line. */
  onRotated?: () => void;
  /** Called when the file is not the one that was written, while `head` is still the last known line. */
  onDoubt?: () => void;
}

/** Identifies a file on a disk under any name. */
interface Identity {
  dev: bigint;
  ino: bigint;
}

export class AuditFile {
  readonly #options: AuditFileOptions;
  #handle: FileHandle | null = null;
  #identity: Identity | null = null;
  /** Not a pipe or a device. */
  #isRegular = false;
  #size = 0;
  #head: Head | null = null;
  #seq: number | null = null;
  #isReopening = false;
  /** Another program has changed the size of the file. */
  #isAltered = false;
  /** A failed write, until it is known how much of it is in the file. */
  #failedWrite: FailedWrite | null = null;
  /** A marker that is not written yet. */
  #pendingMarker: { action: TamperingAction; details: Record<string, number> } | null = null;
  #doubt: string | null = null;
  #whyFailing: string | null = null;
  #unlock: (() => Promise<void>) | null = null;
  #claimed: { identity: Identity; release: () => Promise<void> } | null = null;
  #isWriting = false;
  #isHung = false;
  /** How often it began to fail. */
  failures = 0;
  /** Lines written. */
  lines = 0;

  constructor(options: AuditFileOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  /** The last line of the chain. After a failure it is only reliable after `ready`. */
  get head(): Head {
    return this.#head ?? BEGINNING;
  }

  /** Sequence number of the last record in the file. */
  get seq(): number | null {
    return this.#seq;
  }

  /** Why writing fails; null while it works. */
  get whyFailing(): string | null {
    return this.#whyFailing;
  }

  /** Why the file, or the database that it copies, is doubtful. Never cleared while the process lives. */
  get doubt(): string | null {
    return this.#doubt;
  }

  /** Records a reason to doubt the file. It stays until the process ends. */
  suspect(why: string, fields: Record<string, unknown>): void {
    this.#doubt = why;
    this.#options.log.error(why, { path: this.path, ...fields });
    this.#options.onDoubt?.();
  }

  /** Bytes that fit into the file before it is rotated. */
  get bytesLeft(): number {
    const { rotation } = this.#options;
    return rotation ? Math.max(0, rotation.maxBytes - this.#size) : Infinity;
  }

  /** Whether a file system call is pending that may never return. */
  get isHung(): boolean {
    return this.#isHung;
  }

  /** Locks the file for this process if possible; otherwise that is done before the first write. @throws {PathInUse} */
  async claim(): Promise<void> {
    try {
      await this.#timed(this.#lock());
    } catch (error) {
      if (error instanceof PathInUse) throw error;
      this.#fail(error);
    }
  }

  /** Call when another file may be at the path. */
  reopen(): void {
    this.#isReopening = true;
  }

  /** Opens the file for appending, with space for this many bytes unless an empty file has less. @throws any error that prevents it. */
  async ready(bytes = 0): Promise<void> {
    try {
      await this.#closeIfMoved();
      if (!this.#handle) await this.#open();
      const { rotation } = this.#options;
      if (rotation && this.#size > 0 && bytes > this.bytesLeft) await this.#rotate(rotation.maxFiles);
    } catch (error) {
      if (error instanceof StoreUnavailable)
        await this.#closeHandle(); // Not an error of the file.
      else await this.#failAndClose(error);
      throw error;
    }
  }

  /** Appends lines that are chained to `head`. @param last sequence number of the last record in them. @throws {WriteFailed} */
  async append(bytes: Buffer, after: Head, last: number | null = null): Promise<void> {
    const handle = this.#handle;
    if (!handle) throw new Error(`${this.path} is not open`);
    this.#isWriting = true;
    try {
      await writeWhole(bytes, (piece) => this.#timed(handle.write(piece)));
      await this.#timed(synced(handle)).catch((error: unknown) => {
        throw new WriteFailed(bytes.length, error);
      });
    } catch (error) {
      this.#failedWrite = { bytes, size: this.#size };
      await this.#failAndClose(error);
    } finally {
      this.#isWriting = false;
    }
    this.lines += after.line - this.head.line;
    this.#size += bytes.length;
    this.#head = after;
    this.#seq = last ?? this.#seq;
    this.recovered();
  }

  /** Call when nothing is left to write. */
  recovered(): void {
    if (this.#whyFailing === null) return;
    this.#whyFailing = null;
    this.#options.log.info('the audit file can be written again', { path: this.path });
  }

  /** Writes synchronously, as far as possible, when the process is about to end. */
  writeSync(bytes: Buffer): void {
    if (this.#handle && this.#whyFailing === null) writeAllSync(this.#handle.fd, bytes, this.#isWriting);
  }

  async close(): Promise<void> {
    const [handle, unlock, claimed] = [this.#handle, this.#unlock, this.#claimed];
    this.#handle = this.#unlock = this.#claimed = null;
    await handle?.close();
    await claimed?.release();
    await unlock?.();
  }

  /** Locks the path, for files that do not exist yet, and the inode, because a file may have other names. */
  async #lock(): Promise<void> {
    const found = await fileAt(this.path);
    if (found && !found.isFile()) return;
    if (!this.#unlock) {
      await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
      this.#unlock = await lockPath(await withoutLinks(this.path));
    }
    if (found) await this.#claim(found);
  }

  async #claim({ dev, ino }: Identity): Promise<void> {
    const before = this.#claimed;
    if (isSame(before?.identity, { dev, ino })) return;
    this.#claimed = { identity: { dev, ino }, release: await lockInode(this.path, { dev, ino }) };
    await before?.release();
  }

  async #closeIfMoved(): Promise<void> {
    const handle = this.#handle;
    if (!handle) return;
    const atPath = await this.#timed(fileAt(this.path));
    const isThere = atPath !== null && isSame(this.#identity, atPath);
    this.#isAltered = isThere && atPath.isFile() && Number(atPath.size) !== this.#size;
    if (isThere && !this.#isAltered && !this.#isReopening) return;
    this.#handle = null;
    await this.#timed(handle.close());
  }

  async #open(): Promise<void> {
    const atPath = await this.#timed(fileAt(this.path));
    // The reader of a pipe or a device that someone has put at the path would be the only one to get the lines.
    if (this.#isRegular && atPath && !atPath.isFile())
      throw new NotARegularFile(`${this.path} is no longer a regular file`);
    this.#isReopening = false;
    await this.#timed(this.#lock());
    const handle = await this.#timed(open(this.path, 'a', 0o600));
    this.#handle = handle;
    const found = await this.#timed(handle.stat({ bigint: true }));
    if (found.isFile()) await this.#timed(this.#claim(found));
    await this.#settleFailedWrite();
    const size = found.isFile() ? Number(found.size) : 0;
    const { head, seq, isTorn, doubt } = await this.#continuation(size);
    this.#identity = { dev: found.dev, ino: found.ino };
    this.#isRegular = found.isFile();
    this.#size = size;
    this.#head = head;
    this.#seq = seq;
    this.#isAltered = false;
    if (doubt) this.#reportTampering(doubt, head, size);
    if (isTorn) {
      this.#options.log.warn('the last line of the audit file is incomplete and was ended with a newline', {
        path: this.path,
        ...head,
      });
      await writeWhole(Buffer.from('\n'), (piece) => this.#timed(handle.write(piece)));
      this.#size += 1;
    }
    await this.#writeMarker();
  }

  async #continuation(size: number): Promise<Continuation> {
    const timed = <T>(call: Promise<T>) => this.#timed(call);
    const location = { path: this.path, size, timed };
    if (!this.#head) return continueAtStart(await this.#options.lastAnchor(), location);
    const own = { head: this.#head, seq: this.#seq, isTorn: false };
    const found = await continueAfter(own, location);
    return this.#isAltered && !found.doubt ? { ...found, doubt: 'audit.file_cut' } : found;
  }

  /** Determines how much of a failed write is in its file, which may have been renamed since. */
  async #settleFailedWrite(): Promise<void> {
    const [attempt, identity] = [this.#failedWrite, this.#identity];
    if (!attempt || !this.#head) return;
    const timed = <T>(call: Promise<T>) => this.#timed(call);
    for (const path of identity && this.#isRegular ? [this.path, ...(await timed(rotationsOf(this.path)))] : []) {
      const atPath = await timed(fileAt(path));
      if (!atPath?.isFile() || !isSame(identity, atPath)) continue;
      const taken = await writtenPart(attempt, path, timed);
      if (!taken) break;
      const reached = tailAfter({ head: this.#head, seq: this.#seq, isTorn: false }, taken);
      this.#head = reached.head;
      this.#seq = reached.seq;
      break;
    }
    this.#failedWrite = null;
  }

  #reportTampering(action: TamperingAction, head: Head, size: number): void {
    this.#pendingMarker = { action, details: { known_line: head.line, size } };
    const why =
      action === 'audit.file_cut'
        ? 'the audit file is shorter than before: lines were removed from its end'
        : 'the audit file was replaced or changed: it does not end with the last line that this daemon knows';
    this.suspect(why, { line: head.line, size });
  }

  /** Records in the chain what was found. */
  async #writeMarker(): Promise<void> {
    if (!this.#pendingMarker) return;
    const { action, details } = this.#pendingMarker;
    const marker = { action, seq: this.#seq, timeMs: this.#options.clock.now(), details };
    const { bytes, head } = chainLines([fieldsOfMarker(marker)], this.head);
    await this.append(bytes, head, this.#seq);
    this.#pendingMarker = null;
    this.#options.onDoubt?.();
  }

  async #rotate(maxFiles: number): Promise<void> {
    this.#options.onRotated?.();
    const handle = this.#handle;
    this.#handle = null;
    if (handle) await this.#timed(handle.close());
    await this.#timed(rotate(this.path, maxFiles));
    await this.#open();
  }

  /** Waits for a call. Marks the file as failing if the call takes too long. */
  async #timed<T>(call: Promise<T>): Promise<T> {
    const { clock } = this.#options;
    let cancel: () => void = () => undefined;
    let isOver = false;
    // In steps, so that the call can return in between if this process itself was stalled.
    const watch = (leftMs: number) => {
      if (isOver) return;
      if (leftMs > 0) cancel = clock.after(WATCH_EVERY_MS, () => setImmediate(watch, leftMs - WATCH_EVERY_MS));
      else this.#hang();
    };
    watch(HUNG_MS);
    try {
      return await call;
    } finally {
      isOver = true;
      cancel();
      this.#isHung = false;
    }
  }

  #hang(): void {
    this.#isHung = true;
    this.#fail(new Error(`no response from the file system for ${HUNG_MS / 1000} s`));
  }

  async #failAndClose(error: unknown): Promise<never> {
    this.#fail(error);
    await this.#closeHandle();
    throw error;
  }

  async #closeHandle(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close().catch(() => undefined);
  }

  #fail(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    if (this.#whyFailing === null) {
      this.failures += 1;
      const cause = error instanceof WriteFailed ? error.cause : error;
      this.#options.log.error('the audit file cannot be written', { path: this.path, error: cause });
    }
    this.#whyFailing = why;
  }
}

/** @returns null if there is no file, or no permission to see it. */
async function fileAt(path: string) {
  return stat(path, { bigint: true }).catch(() => null);
}

const isSame = (one: Identity | null | undefined, other: Identity): boolean =>
  one?.dev === other.dev && one.ino === other.ino;

/** A pipe or a device cannot be synced. */
async function synced(handle: FileHandle): Promise<void> {
  try {
    await handle.datasync();
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
