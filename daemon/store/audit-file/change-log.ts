/**
 * The copy of the records of changes in a file: all that are committed, in the order of their numbers, once each. Where it
 * stands is what the file itself says at its end, so that whatever a crash left out of it follows at the next start. The
 * database is the one that keeps them; nothing is lost when the file cannot be written, only late.
 */
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import type { AuditFile } from './audit-file.js';
import { chained } from './chain.js';
import { fieldsOfRecord } from './fields.js';

const AT_A_TIME = 500;
const RETRY_MS = 1_000;

export interface ChangeLogOptions {
  file: AuditFile;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  clock: Clock;
  log: Log;
}

export class ChangeLog {
  readonly #options: ChangeLogOptions;
  #copying: Promise<void> | null = null;
  #isBehind = false;
  #hasBegun = false;
  #isClosed = false;
  #cancelRetry: (() => void) | null = null;
  /** Records that the file says it has, and the database does not. */
  #isAheadOf: number | null = null;

  constructor(options: ChangeLogOptions) {
    this.#options = options;
    options.store.onCommitted(() => {
      this.wake();
    });
  }

  /** From when on there are tables. Resolves when all was copied that could be. */
  async begin(): Promise<void> {
    this.#hasBegun = true;
    this.wake();
    await this.#copying;
  }

  /** There may be something to copy. */
  wake(): void {
    this.#isBehind = true;
    if (!this.#hasBegun || this.#isClosed || this.#cancelRetry) return;
    this.#copying ??= this.#copy().finally(() => {
      this.#copying = null;
      if (this.#isBehind) this.wake(); // By what was committed just now.
    });
  }

  async #copy(): Promise<void> {
    const { file, clock, log } = this.#options;
    try {
      while (this.#isBehind && !this.#isClosed) {
        this.#isBehind = false;
        while (await this.#copySome());
      }
    } catch (error) {
      this.#isBehind = true;
      if (file.whyFailing === null) log.warn('records of changes cannot be copied to the audit file now', { error });
      if (this.#isClosed) return;
      this.#cancelRetry = clock.after(RETRY_MS, () => {
        this.#cancelRetry = null;
        this.wake();
      });
    }
  }

  /** @returns whether there may be more. */
  async #copySome(): Promise<boolean> {
    const { file, store } = this.#options;
    await file.ready();
    const records = await store.recordsAfter(await this.#position(), AT_A_TIME);
    if (records.length === 0) {
      file.settle();
      return false;
    }
    const { bytes, head } = chained(records.map(fieldsOfRecord), file.head);
    await file.append(bytes, head, records.at(-1)?.seq);
    return records.length === AT_A_TIME;
  }

  /** @returns the number of the last record that needs no copy. */
  async #position(): Promise<number> {
    const { file, store, log } = this.#options;
    const { seq } = file;
    if (seq === null) return 0;
    const last = await store.lastRecord();
    if (seq <= last) return seq;
    // The database was put back to an earlier day. What it numbers from then on is not what the file has under these numbers.
    if (this.#isAheadOf === null) log.warn('the audit file has records that the database lacks', { file: seq, last });
    this.#isAheadOf = seq;
    return last;
  }

  /** Copies what there is still to copy, unless that cannot be done now. */
  async close(): Promise<void> {
    const { file } = this.#options;
    if (file.whyFailing === null) {
      while (this.#copying) await this.#copying;
    }
    this.#isClosed = true;
    this.#cancelRetry?.();
  }
}
