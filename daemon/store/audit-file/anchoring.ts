import type { Clock, Log } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import type { AuditFile } from './audit-file.js';
import { type Anchor, type AnchorStore, endsOf } from './chain.js';

const ANCHOR_EVERY_MS = 60_000;
// One for each file that was put aside while the database was away.
const MOST_OWED = 1_000;

interface Owed {
  anchor: Anchor;
  /** The file ends with this line: it was put aside. */
  isEnd: boolean;
}

/** Notes in the database how far a file reaches: every minute in which it grew, before it is put aside, and at the end. */
export class Anchoring {
  readonly #file: AuditFile;
  readonly #store: AnchorStore;
  readonly #maxFiles: number | null;
  readonly #clock: Clock;
  readonly #log: Log;
  #line = 0;
  #owed: Owed[] = [];
  readonly #noting = new SingleRun();
  #cancel: (() => void) | null = null;

  /** @param maxFiles how many files are kept that were put aside; null: they are others' business. */
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

  /** What cannot be noted now is noted with the next one. */
  anchor(): Promise<void> {
    this.#owe(false);
    return this.#note();
  }

  /** The file ends here, and is put aside. */
  rotated(): Promise<void> {
    this.#owe(true);
    return this.#note();
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.anchor();
  }

  #owe(isEnd: boolean): void {
    const { head, seq } = this.#file;
    if (head.line === 0 || (head.line === this.#line && !isEnd)) return;
    // Each stands for all lines before it; only those of ends are needed one by one.
    this.#owed = this.#owed.filter((each) => each.isEnd).slice(-MOST_OWED);
    this.#owed.push({ anchor: { line: head.line, head: head.digest, seq, atMs: this.#clock.now() }, isEnd });
    this.#line = head.line;
  }

  #note(): Promise<void> {
    return this.#noting.run(() => this.#noteAll());
  }

  async #noteAll(): Promise<void> {
    const { path } = this.#file;
    try {
      for (let next = this.#owed[0]; next; next = this.#owed[0]) {
        const noted = next;
        await this.#store.keep(path, noted.anchor);
        if (noted.isEnd) await this.#ended(noted.anchor);
        this.#owed = this.#owed.filter((each) => each !== noted);
      }
    } catch (error) {
      this.#log.warn('how far the audit file reaches could not be noted', { path, error });
    }
  }

  /** Of files that we have removed ourselves only the last line is still of use: those that are kept follow on it. */
  async #ended(end: Anchor): Promise<void> {
    const { path } = this.#file;
    await this.#store.keep(endsOf(path), end);
    const removed = this.#maxFiles === null ? null : await this.#store.newest(endsOf(path), this.#maxFiles);
    if (!removed) return;
    await this.#store.drop(path, removed.line);
    await this.#store.drop(endsOf(path), removed.line);
  }
}
