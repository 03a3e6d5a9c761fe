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
 */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, type Log, StoreUnavailable } from '../../core/ports.js';
import { lockPath, PathInUse } from '../lock.js';
import { type Anchor, BEGINNING, type Head } from './chain.js';
import { putAside, rotationsOf } from './rotations.js';
import { tailOf } from './tail.js';
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
}

export class AuditFile {
  readonly #options: AuditFileOptions;
  #handle: FileHandle | null = null;
  #inode = 0;
  #size = 0;
  #head: Head | null = null;
  #seq: number | null = null;
  #isReopening = false;
  #whyFailing: string | null = null;
  #unlock: (() => Promise<void>) | null = null;
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

  /** Has it open at its end, with room for so many bytes. @throws whatever keeps it from that. */
  async ready(bytes = 0): Promise<void> {
    try {
      await this.#closeIfMoved();
      if (!this.#handle) await this.#open();
      const { rotation } = this.#options;
      if (rotation && this.#size > 0 && this.#size + bytes > rotation.maxBytes) await this.#rotate(rotation.maxFiles);
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
    const [handle, unlock] = [this.#handle, this.#unlock];
    this.#handle = this.#unlock = null;
    await handle?.close();
    await unlock?.();
  }

  async #lock(): Promise<void> {
    if (this.#unlock || !(await isRegularOrMissing(this.path))) return;
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    this.#unlock = await lockPath(this.path);
  }

  async #closeIfMoved(): Promise<void> {
    const handle = this.#handle;
    if (!handle) return;
    const there = await this.#watched(inodeAt(this.path));
    if (there === this.#inode && !this.#isReopening) return;
    this.#handle = null;
    await this.#watched(handle.close());
  }

  async #open(): Promise<void> {
    this.#isReopening = false;
    await this.#watched(this.#lock());
    const handle = await this.#watched(open(this.path, 'a', 0o600));
    this.#handle = handle;
    const found = await this.#watched(handle.stat());
    this.#inode = found.ino;
    this.#size = found.isFile() ? found.size : 0;
    const tail = this.#size > 0 ? await this.#watched(tailOf(this.path)) : null;
    const { head, seq } = tail ?? (await this.#before());
    this.#head = head;
    this.#seq = seq;
    if (tail?.isTorn) {
      this.#options.log.warn('the last line of the audit file was torn, and is ended', { path: this.path, ...head });
      await writeWhole(Buffer.from('\n'), (piece) => this.#watched(handle.write(piece)));
      this.#size += 1;
    }
    await this.#compareWithAnchor();
  }

  /** Where the chain of an empty file goes on: wherever it is known to have reached furthest. */
  async #before(): Promise<{ head: Head; seq: number | null }> {
    const own = { head: this.head, seq: this.#seq };
    const rotations = (await this.#watched(rotationsOf(this.path))).slice(-2);
    const tails = await Promise.all(rotations.map((path) => this.#watched(tailOf(path).catch(() => null))));
    const anchor = await this.#options.lastAnchor();
    const anchored = anchor && { head: { line: anchor.line, digest: anchor.head }, seq: anchor.seq };
    const known = [own, ...tails.filter((tail) => tail !== null), ...(anchored ? [anchored] : [])];
    return known.reduce((best, each) => (each.head.line > best.head.line ? each : best));
  }

  async #compareWithAnchor(): Promise<void> {
    const anchor = await this.#options.lastAnchor();
    if (!anchor || anchor.line <= this.head.line) return;
    const fields = { path: this.path, lines: this.head.line, anchored: anchor.line };
    this.#options.log.error('the audit file is shorter than it was: lines were removed from its end', fields);
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

async function inodeAt(path: string): Promise<number | null> {
  return stat(path).then(
    ({ ino }) => ino,
    () => null,
  );
}

async function isRegularOrMissing(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT',
  );
}

/** What is no file on a disk, such as a pipe, cannot be synced. */
async function synced(handle: FileHandle): Promise<void> {
  try {
    await handle.datasync();
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
