import type { Clock, Log } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import type { AuditFile } from './audit-file.js';
import { type Anchor, type AnchorStore, rotatedEndsOf } from './chain.js';

const ANCHOR_EVERY_MS = 60_000;
// One for each file that was rotated while the database was unavailable.
const MAX_PENDING = 1_000;

interface PendingAnchor {
  anchor: Anchor;
  /** The file ends with this line, because it is being rotated. */
  isEnd: boolean;
}

/**
 * Writes anchors to the database, which record how far an audit file reaches: every minute in which the file grew, before it is
 * rotated, and at shutdown.
 */
export class AnchorWriter {
  readonly #file: AuditFile;
  readonly #store: AnchorStore;
  readonly #maxFiles: number | null;
  readonly #clock: Clock;
  readonly #log: Log;
  #line = 0;
  #pending: PendingAnchor[] = [];
  readonly #writing = new SingleRun();
  #cancel: (() => void) | null = null;

  /** @param maxFiles how many rotated files remain; null if another program rotates the file. */
  constructor(file: AuditFile, store: AnchorStore, maxFiles: number | null, clock: Clock, log: Log) {
    this.#file = file;
    this.#store = store;
    this.#maxFiles = maxFiles;
    this.#clock = clock;
    this.#log = log;
  }

  begin(): void {
    this.#cancel = this.#clock.after(ANCHOR_EVERY_MS, () => {
      void this.anchor();
      this.begin();
    });
  }

  /** Anchors that cannot be written now are written with the next one. */
  anchor(): Promise<void> {
    this.#enqueue(false);
    return this.#write();
  }

  /** Call when the file ends here and is about to be rotated. */
  rotated(): Promise<void> {
    this.#enqueue(true);
    return this.#write();
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.anchor();
  }

  #enqueue(isEnd: boolean): void {
    const { head, seq } = this.#file;
    if (head.line === 0 || (head.line === this.#line && !isEnd)) return;
    // An anchor covers all lines before it, so only those at the end of a file are needed individually.
    this.#pending = this.#pending.filter((each) => each.isEnd).slice(-MAX_PENDING);
    this.#pending.push({ anchor: { line: head.line, head: head.digest, seq, atMs: this.#clock.now() }, isEnd });
    this.#line = head.line;
  }

  #write(): Promise<void> {
    return this.#writing.run(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    const { path } = this.#file;
    try {
      for (let next = this.#pending[0]; next; next = this.#pending[0]) {
        const noted = next;
        await this.#store.save(path, noted.anchor);
        if (noted.isEnd) await this.#saveEnd(noted.anchor);
        this.#pending = this.#pending.filter((each) => each !== noted);
      }
    } catch (error) {
      this.#log.warn('cannot write the anchor of the audit file to the database, retrying', { path, error });
    }
  }

  /** For files that rotation has removed, only the last line still matters: the first remaining file continues from it. */
  async #saveEnd(end: Anchor): Promise<void> {
    const { path } = this.#file;
    await this.#store.save(rotatedEndsOf(path), end);
    const removed = this.#maxFiles === null ? null : await this.#store.newest(rotatedEndsOf(path), this.#maxFiles);
    if (!removed) return;
    await this.#store.deleteBefore(path, removed.line);
    await this.#store.deleteBefore(rotatedEndsOf(path), removed.line);
  }
}
