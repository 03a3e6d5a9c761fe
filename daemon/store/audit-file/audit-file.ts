/**
 * A file that lines are put behind one another in, and never anything else. Our own, for the loggers there are lose records on
 * exit and say nothing of a full disk.
 *
 * **Checked.** A write that took less than it was given is continued, one that failed is told, and lines count as written when
 * the disk has them (fdatasync). After a failure the file is opened anew and its own end says where the chain goes on: what was
 * torn is ended with a newline and chained over.
 *
 * **Hung.** A disk may neither take nor refuse. Nothing here waits in a request's way; after `HUNG_MS` the file counts as failing, and
 * no other call is made until that one returns: each holds one of the few threads that Node has for files and for SQLite.
 *
 * **Moved.** Before each batch the path is looked at. If another file, or none, is there by now (logrotate), or SIGHUP asked for it,
 * the lines go there, chained to the last of the file before.
 *
 * **Doubted.** A file that is neither new nor ends where our chain does was put there, or changed, by somebody else. The chain goes on behind
 * our own last line and never behind a foreign one; a marker in the chain says so, what was known is anchored at once, and the file counts as doubtful
 * until the process ends: nobody who can write to the folder can take that back.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import { lockInode, lockPath, PathInUse, withoutLinks } from '../lock.js';
import { type Anchor, BEGINNING, chained, type Head } from './chain.js';
import {
  type Attempt,
  behind,
  type Continuation,
  continueAtStart,
  continueBehind,
  type Doubt,
  takenOf,
} from './continuing.js';
import { fieldsOfMarker } from './marker.js';
import { putAside, rotationsOf } from './rotations.js';
import { NotARegularFile } from './tail.js';
import { flushAtOnce, NotWritten, writeWhole } from './writing.js';

export const HUNG_MS = 5_000;
const WATCH_EVERY_MS = 500;

export interface AuditFileOptions {
  /** Absolute. */
  path: string;
  clock: Clock;
  log: Log;
  /** How far the chain is known to have reached, for when there is no file to tell. May reject with `StoreUnavailable`. */
  lastAnchor: () => Promise<Anchor | null>;
  /** Null: it is put aside by others, if at all. */
  rotation: { maxBytes: number; maxFiles: number } | null;
  /** Told before the file is put aside, of how far it reaches. */
  onRotated?: () => void;
  /** Told when the file turns out not to be what was written, while `head` is still the last line that is known. */
  onDoubt?: () => void;
}

/** A file on a disk, under whatever name. */
interface Identity {
  dev: bigint;
  ino: bigint;
}

export class AuditFile {
  readonly #options: AuditFileOptions;
  #handle: FileHandle | null = null;
  #identity: Identity | null = null;
  /** No pipe, and no device. */
  #isRegular = false;
  #size = 0;
  #head: Head | null = null;
  #seq: number | null = null;
  #isReopening = false;
  /** Somebody else has changed the size of the file. */
  #isAltered = false;
  /** A write that failed, while it is not known how much of it is in the file. */
  #attempt: Attempt | null = null;
  /** What a marker is still to be written of. */
  #unmarked: { action: Doubt; details: Record<string, number> } | null = null;
  #doubt: string | null = null;
  #whyFailing: string | null = null;
  #unlock: (() => Promise<void>) | null = null;
  #claimed: { identity: Identity; release: () => Promise<void> } | null = null;
  #isWriting = false;
  #isHung = false;
  /** Times that it began to fail. */
  failures = 0;
  /** Lines written. */
  lines = 0;

  constructor(options: AuditFileOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  /** Where the chain goes on. Only `ready` says what it is after a failure. */
  get head(): Head {
    return this.#head ?? BEGINNING;
  }

  /** The place of the last record in it. */
  get seq(): number | null {
    return this.#seq;
  }

  /** Null while what is written gets there. */
  get whyFailing(): string | null {
    return this.#whyFailing;
  }

  /** Why the file, or what it is a copy of, is not what it should be; for as long as this process lives. */
  get doubt(): string | null {
    return this.#doubt;
  }

  /** Takes note of a reason for doubt. It stays until the process ends. */
  suspect(why: string, fields: Record<string, unknown>): void {
    this.#doubt = why;
    this.#options.log.error(why, { path: this.path, ...fields });
    this.#options.onDoubt?.();
  }

  /** Bytes that fit into the file before it is put aside. */
  get room(): number {
    const { rotation } = this.#options;
    return rotation ? Math.max(0, rotation.maxBytes - this.#size) : Infinity;
  }

  /** Whether a call is under way that may never return. */
  get isHung(): boolean {
    return this.#isHung;
  }

  /** Claims the file for this process, if that can be done now; if not, it is done before the first write. @throws {PathInUse} */
  async claim(): Promise<void> {
    try {
      await this.#watched(this.#lock());
    } catch (error) {
      if (error instanceof PathInUse) throw error;
      this.#fail(error);
    }
  }

  /** Another file may be at the path by now. */
  reopen(): void {
    this.#isReopening = true;
  }

  /** Has it open at its end, with room for so many bytes unless a file has less. @throws whatever keeps it from that. */
  async ready(bytes = 0): Promise<void> {
    try {
      await this.#closeIfMoved();
      if (!this.#handle) await this.#open();
      const { rotation } = this.#options;
      if (rotation && this.#size > 0 && bytes > this.room) await this.#rotate(rotation.maxFiles);
    } catch (error) {
      if (error instanceof StoreUnavailable)
        await this.#closeHandle(); // No failure of the file.
      else await this.#give(error);
      throw error;
    }
  }

  /** Writes lines that are chained to `head`. @param last the place of the last record in them. @throws {NotWritten} */
  async append(bytes: Buffer, after: Head, last: number | null = null): Promise<void> {
    const handle = this.#handle;
    if (!handle) throw new Error(`${this.path} is not open`);
    this.#isWriting = true;
    try {
      await writeWhole(bytes, (piece) => this.#watched(handle.write(piece)));
      await this.#watched(synced(handle)).catch((error: unknown) => {
        throw new NotWritten(bytes.length, error);
      });
    } catch (error) {
      this.#attempt = { bytes, size: this.#size };
      await this.#give(error);
    } finally {
      this.#isWriting = false;
    }
    this.lines += after.line - this.head.line;
    this.#size += bytes.length;
    this.#head = after;
    this.#seq = last ?? this.#seq;
    this.settle();
  }

  /** There is nothing left to write. */
  settle(): void {
    if (this.#whyFailing === null) return;
    this.#whyFailing = null;
    this.#options.log.info('the audit file can be written again', { path: this.path });
  }

  /** The process ends at once: writes what is not written yet without waiting, as far as that can be. */
  writeAtOnce(bytes: Buffer): void {
    if (this.#handle && this.#whyFailing === null) flushAtOnce(this.#handle.fd, bytes, this.#isWriting);
  }

  async close(): Promise<void> {
    const [handle, unlock, claimed] = [this.#handle, this.#unlock, this.#claimed];
    this.#handle = this.#unlock = this.#claimed = null;
    await handle?.close();
    await claimed?.release();
    await unlock?.();
  }

  /** By its path, for files that are still to come, and by itself, for it may have other names. */
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
    const there = await this.#watched(fileAt(this.path));
    const isThere = there !== null && isSame(this.#identity, there);
    this.#isAltered = isThere && there.isFile() && Number(there.size) !== this.#size;
    if (isThere && !this.#isAltered && !this.#isReopening) return;
    this.#handle = null;
    await this.#watched(handle.close());
  }

  async #open(): Promise<void> {
    const there = await this.#watched(fileAt(this.path));
    // Whoever puts a pipe or a device there would have the lines, and nobody else.
    if (this.#isRegular && there && !there.isFile())
      throw new NotARegularFile(`${this.path} is not a regular file any more`);
    this.#isReopening = false;
    await this.#watched(this.#lock());
    const handle = await this.#watched(open(this.path, 'a', 0o600));
    this.#handle = handle;
    const found = await this.#watched(handle.stat({ bigint: true }));
    if (found.isFile()) await this.#watched(this.#claim(found));
    await this.#settleAttempt();
    const size = found.isFile() ? Number(found.size) : 0;
    const { head, seq, isTorn, doubt } = await this.#continuation(size);
    this.#identity = { dev: found.dev, ino: found.ino };
    this.#isRegular = found.isFile();
    this.#size = size;
    this.#head = head;
    this.#seq = seq;
    this.#isAltered = false;
    if (doubt) this.#doubted(doubt, head, size);
    if (isTorn) {
      this.#options.log.warn('the last line of the audit file was torn, and is ended', { path: this.path, ...head });
      await writeWhole(Buffer.from('\n'), (piece) => this.#watched(handle.write(piece)));
      this.#size += 1;
    }
    await this.#mark();
  }

  async #continuation(size: number): Promise<Continuation> {
    const watched = <T>(call: Promise<T>) => this.#watched(call);
    const place = { path: this.path, size, watched };
    if (!this.#head) return continueAtStart(await this.#options.lastAnchor(), place);
    const own = { head: this.#head, seq: this.#seq, isTorn: false };
    const found = await continueBehind(own, place);
    return this.#isAltered && !found.doubt ? { ...found, doubt: 'audit.file_cut' } : found;
  }

  /** Finds out how much of a write that failed is in its file, wherever that is by now. */
  async #settleAttempt(): Promise<void> {
    const [attempt, identity] = [this.#attempt, this.#identity];
    if (!attempt || !this.#head) return;
    const watched = <T>(call: Promise<T>) => this.#watched(call);
    for (const path of identity && this.#isRegular ? [this.path, ...(await watched(rotationsOf(this.path)))] : []) {
      const there = await watched(fileAt(path));
      if (!there?.isFile() || !isSame(identity, there)) continue;
      const taken = await takenOf(attempt, path, watched);
      if (!taken) break;
      const reached = behind({ head: this.#head, seq: this.#seq, isTorn: false }, taken);
      this.#head = reached.head;
      this.#seq = reached.seq;
      break;
    }
    this.#attempt = null;
  }

  #doubted(action: Doubt, head: Head, size: number): void {
    this.#unmarked = { action, details: { known_line: head.line, size } };
    const why =
      action === 'audit.file_cut'
        ? 'the audit file is shorter than it was: lines were removed from its end'
        : 'the audit file is not the one that was written: it does not end with the last line that is known';
    this.suspect(why, { line: head.line, size });
  }

  /** Says in the chain what was found. */
  async #mark(): Promise<void> {
    if (!this.#unmarked) return;
    const { action, details } = this.#unmarked;
    const marker = { action, seq: this.#seq, timeMs: this.#options.clock.now(), details };
    const { bytes, head } = chained([fieldsOfMarker(marker)], this.head);
    await this.append(bytes, head, this.#seq);
    this.#unmarked = null;
    this.#options.onDoubt?.();
  }

  async #rotate(maxFiles: number): Promise<void> {
    this.#options.onRotated?.();
    const handle = this.#handle;
    this.#handle = null;
    if (handle) await this.#watched(handle.close());
    await this.#watched(putAside(this.path, maxFiles));
    await this.#open();
  }

  /** Waits for a call, and has the file count as failing while that is out for too long. */
  async #watched<T>(call: Promise<T>): Promise<T> {
    const { clock } = this.#options;
    let cancel: () => void = () => undefined;
    let isOver = false;
    // In steps, between which the call has a chance to return: it may be this process that stood still.
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
    this.#fail(new Error(`no answer for ${HUNG_MS / 1000} s`));
  }

  async #give(error: unknown): Promise<never> {
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
      const cause = error instanceof NotWritten ? error.cause : error;
      this.#options.log.error('the audit file cannot be written', { path: this.path, error: cause });
    }
    this.#whyFailing = why;
  }
}

/** @returns null where there is none, or none that may be looked at. */
async function fileAt(path: string) {
  return stat(path, { bigint: true }).catch(() => null);
}

const isSame = (one: Identity | null | undefined, other: Identity): boolean =>
  one?.dev === other.dev && one.ino === other.ino;

/** What is no file on a disk, such as a pipe, cannot be synced. */
async function synced(handle: FileHandle): Promise<void> {
  try {
    await handle.datasync();
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
