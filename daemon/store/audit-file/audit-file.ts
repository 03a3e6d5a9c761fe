/**
 * Append-only audit file. Existing logging libraries lose records on exit and do not report a full disk, hence our own.
 *
 * **Checked writes.** A short write is continued, a failed write is reported, and lines count as written after fdatasync. After a
 * failure the file stays where it was: the next attempt writes the rest.
 *
 * **Hung disks.** A disk may neither complete nor refuse a write. No request waits for one. After `HUNG_MS` the file counts as
 * failing, and no other call is made until the pending one returns, because each call occupies one of the few threads that Node.js
 * has for files and for SQLite.
 *
 * **Moved files.** The path is checked before each batch. If another file or none is there (logrotate), the lines go to the file at
 * the path, chained to the last line of the previous file.
 *
 * **Tampering.** A file that is not new and does not end where our chain does was replaced or changed by someone else. The chain
 * continues from our own last line, never from a foreign one. A marker in the chain records this, the last known line is anchored
 * at once, and the file counts as doubtful until the process ends: no one with write access to the folder can undo that.
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import { withTimeout } from '../../core/timing.js';
import { lockInode, lockPath, PathInUse, withoutLinks } from '../lock.js';
import { type AnchorStore, AnchorWriter } from './anchors.js';
import { BEGINNING, chainLines, type Head, type Tail } from './chain.js';
import { type Continuation, continueAfter, continueAtStart } from './continuation.js';
import { HangWatch, HUNG_MS, writeAllSync } from './disk.js';
import { fieldsOfMarker, type Marker } from './fields.js';
import { rotate } from './rotations.js';
import { NotARegularFile } from './lines.js';

const ANCHOR_EVERY_MS = 60_000;
const MAX_ANCHOR_MS = 1_000;

export interface AuditFileOptions {
  /** Absolute path. */
  path: string;
  anchors: AnchorStore;
  clock: Clock;
  log: Log;
  /** Null if another program rotates the file, or none. */
  rotation: { maxBytes: number; maxFiles: number } | null;
}

/** Identifies a file on a disk under any name. */
interface Identity {
  dev: bigint;
  ino: bigint;
}

/** Lines that are not written completely yet. */
interface Batch {
  bytes: Buffer;
  /** How many of them are in the file. */
  written: number;
  /** The end of the chain after these lines. */
  end: Tail;
}

export class AuditFile {
  readonly #options: AuditFileOptions;
  readonly #anchors: AnchorWriter;
  readonly #disk: HangWatch;
  #handle: FileHandle | null = null;
  #identity: Identity | null = null;
  /** Not a pipe or a device. */
  #isRegular = false;
  /** Without the batch. */
  #size = 0;
  /** Null until the file was opened for the first time. */
  #end: Tail | null = null;
  #batch: Batch | null = null;
  #doubt: string | null = null;
  #whyFailing: string | null = null;
  #unlock: (() => Promise<void>) | null = null;
  #claimed: { identity: Identity; release: () => Promise<void> } | null = null;
  #isWriting = false;
  #cancelAnchoring: (() => void) | null = null;
  /** How often it began to fail. */
  failures = 0;
  /** Lines written. */
  lines = 0;

  constructor(options: AuditFileOptions) {
    const { path, anchors, clock, log } = options;
    this.#options = options;
    this.#anchors = new AnchorWriter(path, anchors, clock, log);
    this.#disk = new HangWatch(clock, () => {
      this.#fail(new Error(`no response from the file system for ${HUNG_MS / 1000} s`));
    });
  }

  get path(): string {
    return this.#options.path;
  }

  /** Size at which the file is rotated. */
  get maxBytes(): number {
    return this.#options.rotation?.maxBytes ?? Infinity;
  }

  /** The last line of the chain that is written. After `ready`, the next one is chained to it. */
  get head(): Head {
    return this.#end?.head ?? BEGINNING;
  }

  /** Sequence number of the last record in the file. */
  get seq(): number | null {
    return this.#end?.seq ?? null;
  }

  /** Bytes of lines that were given to `append` and are not written yet. */
  get bytesWaiting(): number {
    return this.#batch ? this.#batch.bytes.length - this.#batch.written : 0;
  }

  /** Why writing fails; null while it works. */
  get whyFailing(): string | null {
    return this.#whyFailing;
  }

  /** Why the file, or the database that it copies, is doubtful. Never cleared while the process lives. */
  get doubt(): string | null {
    return this.#doubt;
  }

  /** Whether a file system call is pending that may never return. */
  get isHung(): boolean {
    return this.#disk.isHung;
  }

  /** Records a reason to doubt the file. It stays until the process ends. */
  suspect(why: string, fields: Record<string, unknown>): void {
    this.#doubt = why;
    this.#options.log.error(why, { path: this.path, ...fields });
  }

  /** Anchors the file from now on every minute in which it grows. */
  keepAnchored(): void {
    void this.anchor();
    this.#cancelAnchoring = this.#options.clock.after(ANCHOR_EVERY_MS, () => {
      this.keepAnchored();
    });
  }

  /** Records in the database how far the file reaches. */
  async anchor(): Promise<void> {
    if (this.#end) await this.#anchors.save(this.#end);
  }

  /** Locks the file for this process if possible; otherwise that is done before the first write. @throws {PathInUse} */
  async claim(): Promise<void> {
    try {
      await this.#disk.timed(this.#lock());
    } catch (error) {
      if (error instanceof PathInUse) throw error;
      this.#fail(error);
    }
  }

  /**
   * Opens the file for appending, and writes what earlier calls of `append` could not write.
   *
   * @param bytes how much is to be appended. The file is rotated if it has no space for it.
   * @throws any error that prevents it.
   */
  async ready(bytes = 0): Promise<void> {
    try {
      await this.#closeIfMoved();
      const isOpening = !this.#handle;
      if (isOpening) await this.#open();
      await this.#writeBatch();
      // A marker was written.
      if (isOpening && this.#doubt !== null) void this.anchor();
      const { rotation } = this.#options;
      if (rotation && this.#size > 0 && this.#size + bytes > rotation.maxBytes) await this.#rotate(rotation.maxFiles);
    } catch (error) {
      // The database is not an error of the file.
      if (!(error instanceof StoreUnavailable)) this.#fail(error);
      await this.#closeUnlessBegun();
      throw error;
    }
  }

  /**
   * Appends lines that are chained to `head`. Call after `ready`. If it fails, the file keeps them: `ready` writes them.
   *
   * @param seq sequence number of the last record in them.
   */
  async append(bytes: Buffer, head: Head, seq: number | null = this.seq): Promise<void> {
    this.#batch = { bytes, written: 0, end: { head, seq } };
    await this.#writeOrFail();
  }

  /** Records in the chain that something is not as expected, and anchors that. Call after `ready`. */
  async mark(marker: Omit<Marker, 'timeMs'>): Promise<void> {
    this.#addMarker(marker);
    await this.#writeOrFail();
    void this.anchor();
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
    this.#cancelAnchoring?.();
    await this.anchor();
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

  /** Closes the file if another one or none is at the path, or if another program has changed its size. */
  async #closeIfMoved(): Promise<void> {
    const handle = this.#handle;
    if (!handle) return;
    const { timed } = this.#disk;
    const atPath = await timed(fileAt(this.path));
    const isThere = atPath !== null && isSame(this.#identity, atPath);
    const batch = this.#batch;
    const inFile = isThere && this.#isRegular ? Number(atPath.size) - this.#size : (batch?.written ?? 0);
    if (isThere && inFile === (batch?.written ?? 0)) return;
    if (batch && batch.written > 0) {
      if (isThere && inFile >= 0 && inFile < batch.written) {
        // The disk took more than it could store.
        batch.written = inFile;
        return;
      }
      // What is in the file that was moved away must not be in the next one too.
      if (!isThere && this.#isRegular) await timed(handle.truncate(this.#size)).catch(() => undefined);
      batch.written = 0;
    }
    this.#handle = null;
    await timed(handle.close());
  }

  async #open(): Promise<void> {
    const { timed } = this.#disk;
    const atPath = await timed(fileAt(this.path));
    // The reader of a pipe or a device that someone has put at the path would be the only one to get the lines.
    if (this.#isRegular && atPath && !atPath.isFile())
      throw new NotARegularFile(`${this.path} is no longer a regular file`);
    await timed(this.#lock());
    const handle = await timed(open(this.path, 'a', 0o600));
    this.#handle = handle;
    const found = await timed(handle.stat({ bigint: true }));
    if (found.isFile()) await timed(this.#claim(found));
    const size = found.isFile() ? Number(found.size) : 0;
    const { head, seq, isTorn, doubt } = await this.#continuation(found, size);
    this.#identity = { dev: found.dev, ino: found.ino };
    this.#isRegular = found.isFile();
    this.#size = size;
    this.#end = { head, seq };
    if (doubt) {
      const why =
        doubt === 'audit.file_cut'
          ? 'the audit file is shorter than before: lines were removed from its end'
          : 'the audit file was replaced or changed: it does not end with the last line that this daemon knows';
      this.suspect(why, { line: head.line, size });
      void this.anchor();
      this.#addMarker({ action: doubt, seq, details: { known_line: head.line, size } });
    }
    if (!isTorn) return;
    const why = 'the last line of the audit file is incomplete and is ended with a newline';
    this.#options.log.warn(why, { path: this.path, ...head });
    const { bytes, end } = this.#waiting;
    this.#batch = { bytes: Buffer.concat([Buffer.from('\n'), bytes]), written: 0, end };
  }

  async #continuation(found: Identity, size: number): Promise<Continuation> {
    const location = { path: this.path, size, timed: this.#disk.timed };
    if (!this.#end) return continueAtStart(await this.#anchors.last(), location);
    const isSameFile = this.#isRegular && isSame(this.#identity, found);
    if (isSameFile && size === this.#size) return { ...this.#end, isTorn: false, doubt: null };
    const continuation = await continueAfter(this.#end, location);
    return isSameFile && !continuation.doubt ? { ...continuation, doubt: 'audit.file_cut' } : continuation;
  }

  get #waiting(): Batch {
    const end = this.#end ?? { head: BEGINNING, seq: null };
    return this.#batch ?? { bytes: Buffer.alloc(0), written: 0, end };
  }

  #addMarker(marker: Omit<Marker, 'timeMs'>): void {
    const { bytes: before, written, end } = this.#waiting;
    const fields = fieldsOfMarker({ ...marker, timeMs: this.#options.clock.now() });
    const { bytes, head } = chainLines([fields], end.head);
    this.#batch = { bytes: Buffer.concat([before, bytes]), written, end: { head, seq: marker.seq } };
  }

  async #writeOrFail(): Promise<void> {
    try {
      await this.#writeBatch();
    } catch (error) {
      this.#fail(error);
      await this.#closeUnlessBegun();
      throw error;
    }
    this.recovered();
  }

  async #writeBatch(): Promise<void> {
    const [handle, batch] = [this.#handle, this.#batch];
    if (!batch) return;
    if (!handle) throw new Error(`${this.path} is not open`);
    const { timed } = this.#disk;
    this.#isWriting = true;
    try {
      while (batch.written < batch.bytes.length) {
        const { bytesWritten } = await timed(handle.write(batch.bytes.subarray(batch.written)));
        if (bytesWritten === 0) throw new Error('the file system accepts no bytes');
        batch.written += bytesWritten;
      }
      await timed(synced(handle));
    } finally {
      this.#isWriting = false;
    }
    this.lines += batch.end.head.line - (this.#end?.head.line ?? 0);
    this.#size += batch.bytes.length;
    this.#end = batch.end;
    this.#batch = null;
  }

  async #rotate(maxFiles: number): Promise<void> {
    // First, so that a crash cannot leave a rotated file whose end is unknown. Without the database, lines are written all the same.
    const anchored = this.#end ? this.#anchors.saveEnd(this.#end, maxFiles) : Promise.resolve();
    await withTimeout(this.#options.clock, MAX_ANCHOR_MS, anchored, () => undefined);
    const handle = this.#handle;
    this.#handle = null;
    if (handle) await this.#disk.timed(handle.close());
    await this.#disk.timed(rotate(this.path, maxFiles));
    await this.#open();
  }

  /** A handle that may be broken is replaced, but a part of the batch can only be followed by the rest. */
  async #closeUnlessBegun(): Promise<void> {
    if (this.#batch && this.#batch.written > 0) return;
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close().catch(() => undefined);
  }

  #fail(error: unknown): void {
    if (this.#whyFailing === null) {
      this.failures += 1;
      this.#options.log.error('the audit file cannot be written', { path: this.path, error });
    }
    this.#whyFailing = error instanceof Error ? error.message : String(error);
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
