/**
 * Copy of the audit records of changes in a file: all committed records, in the order of their sequence numbers, once each. The end
 * of the file determines where the copy continues, so that records that are missing after a crash follow at the next start. The
 * database is authoritative: when the file cannot be written, records are delayed but not lost.
 *
 * Each time new records are read, the last copied record is read again. If the database has another record in its place, or none,
 * the database was restored from a backup, or a replica took over: a marker in the chain records this, and the records since the
 * last anchor are copied again. The anchor is in the database: up to there it has the records that the file has.
 */
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import type { AnchorStore } from './anchors.js';
import type { AuditFile } from './audit-file.js';
import { chainLines } from './chain.js';
import { agreesSince } from './continuation.js';
import { fieldsOfRecord } from './fields.js';

const BATCH_SIZE = 500;
const RETRY_MS = 1_000;

export interface ChangeLogOptions {
  file: AuditFile;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  anchors: Pick<AnchorStore, 'last'>;
  clock: Clock;
  log: Log;
}

/** A record that both the file and the database have. `id` is null if there is none. */
interface CommonRecord {
  seq: number;
  id: string | null;
}

export class ChangeLog {
  readonly #options: ChangeLogOptions;
  readonly #copying = new SingleRun(() => {
    if (this.#hasPending) this.wake(); // Records were committed meanwhile.
  });
  #hasPending = false;
  #hasBegun = false;
  #isClosed = false;
  #cancelRetry: (() => void) | null = null;
  /** The last one; null until the file was compared with the database. */
  #last: CommonRecord | null = null;

  constructor(options: ChangeLogOptions) {
    this.#options = options;
    options.store.onCommitted(() => {
      this.wake();
    });
  }

  /** Call after the migrations. Resolves when everything that can be copied is copied. */
  async begin(): Promise<void> {
    this.#hasBegun = true;
    this.wake();
    await this.#copying.current;
  }

  /** Call when there may be records to copy. */
  wake(): void {
    this.#hasPending = true;
    if (!this.#hasBegun || this.#isClosed || this.#cancelRetry) return;
    void this.#copying.run(() => this.#copy());
  }

  async #copy(): Promise<void> {
    const { file, clock, log } = this.#options;
    try {
      while (this.#hasPending && !this.#isClosed) {
        this.#hasPending = false;
        while (await this.#copySome());
      }
    } catch (error) {
      this.#hasPending = true;
      if (file.whyFailing === null)
        log.warn('cannot copy audit records of changes to the audit file, retrying', { error });
      if (this.#isClosed) return;
      this.#cancelRetry = clock.after(RETRY_MS, () => {
        this.#cancelRetry = null;
        this.wake();
      });
    }
  }

  /** @returns whether there may be more records. */
  async #copySome(): Promise<boolean> {
    const { file, store } = this.#options;
    await file.ready();
    const last = this.#last ?? (await this.#compare());
    const records = await store.recordsAfter(Math.max(0, last.seq - 1), BATCH_SIZE);
    const again = last.id === null ? null : records.shift();
    if (again !== null && (again?.seq !== last.seq || again.id !== last.id)) {
      await this.#goBack();
      return true;
    }
    const newest = records.at(-1);
    if (!newest) {
      file.recovered();
      return false;
    }
    const { bytes, head } = chainLines(records.map(fieldsOfRecord), file.head);
    this.#last = { seq: newest.seq, id: newest.id }; // Also if it fails: the file writes these lines later.
    await file.append(bytes, head, newest.seq);
    return records.length >= BATCH_SIZE - 1;
  }

  /** Finds the record after which the copy continues. */
  async #compare(): Promise<CommonRecord> {
    const { file, store, anchors } = this.#options;
    if (file.seq === null) return (this.#last = { seq: 0, id: null });
    const anchor = await anchors.last(file.path);
    if (!(await agreesSince(anchor, file.head, file.path, store))) return this.#goBack();
    return (this.#last = await this.#recordAt(file.seq));
  }

  /** The database is not the one that the file was copied from: marks this, and continues after the last anchored record. */
  async #goBack(): Promise<CommonRecord> {
    const { file, store, anchors } = this.#options;
    const [anchor, last] = [await anchors.last(file.path), await store.lastRecord()];
    const seq = Math.min(anchor?.seq ?? 0, file.seq ?? 0, last);
    const details = { file_seq: file.seq ?? 0, database_seq: last };
    const common = await this.#recordAt(seq);
    file.suspect(
      'the database lacks records that the audit file has: the database was restored from a backup, or the file was forged',
      { ...details, continued_after: seq },
    );
    this.#last = common; // Also if the marker cannot be written now: the file writes it later.
    await file.mark({ action: 'audit.database_behind', seq, details });
    return common;
  }

  async #recordAt(seq: number): Promise<CommonRecord> {
    const [record] = seq === 0 ? [] : await this.#options.store.recordsAfter(seq - 1, 1);
    return { seq, id: record?.seq === seq ? record.id : null };
  }

  /** Copies the remaining records, unless the file cannot be written. */
  async close(): Promise<void> {
    const { file } = this.#options;
    if (file.whyFailing === null) {
      while (this.#copying.current) await this.#copying.current;
    }
    this.#isClosed = true;
    this.#cancelRetry?.();
  }
}
