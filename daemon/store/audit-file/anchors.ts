/**
 * Anchors: how far an audit file reaches, recorded in the database, where someone with write access to the file cannot change it.
 */
import type { Clock, Log } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import type { Tail } from './chain.js';

/** The last line of a chain at some time. */
export interface Anchor {
  line: number;
  head: string;
  /** Sequence number of the last record up to that line; null in a file without records. */
  seq: number | null;
  atMs: number;
}

export interface AnchorStore {
  /** @param chain absolute path of the chain's current file, on this machine. */
  last(chain: string): Promise<Anchor | null>;
  save(chain: string, anchor: Anchor): Promise<void>;
  /** Deletes the anchors of earlier lines. */
  deleteBefore(chain: string, beforeLine: number): Promise<void>;
  /** @param back how many newer anchors to skip; 0 returns the newest. @returns null if there are not enough. */
  newest(chain: string, back: number): Promise<Anchor | null>;
}

/**
 * Name of a second chain of anchors: the last lines of the files that llmp has rotated. Only these anchors prove which lines our
 * own rotation removed; what the files in the folder say about it may be forged.
 *
 * @param chain absolute path of the file.
 */
export const rotatedEndsOf = (chain: string): string => `${chain}:ends`;

// One for each file that was rotated while the database was unavailable.
const MAX_PENDING_ENDS = 1_000;

/** Writes the anchors of one file. What cannot be written now is written with the next anchor. */
export class AnchorWriter {
  readonly #path: string;
  readonly #store: AnchorStore;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: Log;
  #newest: Anchor | null = null;
  /** The last lines of rotated files. */
  #ends: { end: Anchor; filesKept: number }[] = [];
  #lineSaved = 0;
  readonly #writing = new SingleRun();

  constructor(path: string, store: AnchorStore, clock: Pick<Clock, 'now'>, log: Log) {
    this.#path = path;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws {StoreUnavailable} */
  last(): Promise<Anchor | null> {
    return this.#store.last(this.#path);
  }

  /** @param end the last line that is known to be in the file. */
  save(end: Tail): Promise<void> {
    this.#newest = this.#anchorOf(end);
    return this.#write();
  }

  /** The file ends here, because it is being rotated. @param filesKept how many rotated files remain. */
  saveEnd(end: Tail, filesKept: number): Promise<void> {
    this.#ends = [...this.#ends, { end: this.#anchorOf(end), filesKept }].slice(-MAX_PENDING_ENDS);
    return this.#write();
  }

  #anchorOf({ head, seq }: Tail): Anchor {
    return { line: head.line, head: head.digest, seq, atMs: this.#clock.now() };
  }

  #write(): Promise<void> {
    return this.#writing.run(async () => {
      try {
        for (let next = this.#ends[0]; next; next = this.#ends[0]) {
          await this.#saveEnd(next.end, next.filesKept);
          this.#ends = this.#ends.filter((each) => each !== next);
        }
        // An anchor covers all lines before it, so only the newest one matters.
        for (let next = this.#newest; next && next.line > this.#lineSaved; next = this.#newest) {
          await this.#store.save(this.#path, next);
          this.#lineSaved = next.line;
        }
      } catch (error) {
        const path = this.#path;
        this.#log.warn('cannot write the anchor of the audit file to the database, retrying', { path, error });
      }
    });
  }

  /** For files that rotation has removed, only the last line still matters: the first remaining file continues from it. */
  async #saveEnd(end: Anchor, filesKept: number): Promise<void> {
    const [path, ends] = [this.#path, rotatedEndsOf(this.#path)];
    await this.#store.save(path, end);
    await this.#store.save(ends, end);
    const removed = await this.#store.newest(ends, filesKept);
    if (!removed) return;
    await this.#store.deleteBefore(path, removed.line);
    await this.#store.deleteBefore(ends, removed.line);
  }
}
