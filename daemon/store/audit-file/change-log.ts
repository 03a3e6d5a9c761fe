/**
 * Copy of the audit records of changes in a file: all committed records, in the order of their sequence numbers, once each. The end
 * of the file determines where the copy continues, so that records that are missing after a crash follow at the next start. The
 * database is authoritative: when the file cannot be written, records are delayed but not lost.
 *
 * Each time new records are read, the last copied record is read again. If the database has another record in its place, or none,
 * the database was restored from a backup, or a replica took over: the copy continues after the last record that both have, and a
 * marker in the chain records this.
 */
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import { lastCommonSeq } from './agreement.js';
import type { AuditFile } from './audit-file.js';
import { type Anchor, chainLines } from './chain.js';
import { fieldsOfRecord } from './fields.js';
import { fieldsOfMarker } from './marker.js';

const BATCH_SIZE = 500;
const RETRY_MS = 1_000;

export interface ChangeLogOptions {
  file: AuditFile;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  /** The last anchor of the file. */
  lastAnchor: () => Promise<Anchor | null>;
  clock: Clock;
  log: Log;
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
  /** The last record that the file and the database have in common; null until they are compared. */
  #last: { seq: number; id: string | null } | null = null;

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
    const last = (this.#last ??= await this.#findCommonRecord());
    const records = await store.recordsAfter(Math.max(0, last.seq - 1), BATCH_SIZE);
    const again = last.id === null ? null : records.shift();
    if (again !== null && (again?.seq !== last.seq || again.id !== last.id)) {
      this.#last = await this.#findCommonRecord();
      return true;
    }
    if (records.length === 0) {
      file.recovered();
      return false;
    }
    const { bytes, head } = chainLines(records.map(fieldsOfRecord), file.head);
    const copied = records.at(-1);
    this.#last = null; // A failed write may leave some of its lines in the file, so compare again after it.
    await file.append(bytes, head, copied?.seq);
    this.#last = copied ? { seq: copied.seq, id: copied.id } : null;
    return records.length >= BATCH_SIZE - 1;
  }

  /** Finds the last record that the file and the database have in common. Writes a marker if the file has later records. */
  async #findCommonRecord(): Promise<{ seq: number; id: string | null }> {
    const { file, store, lastAnchor, clock } = this.#options;
    const { seq, path } = file;
    const commonSeq = seq === null ? 0 : await lastCommonSeq(seq, { path, store, anchor: await lastAnchor() });
    if (seq !== null && commonSeq < seq) {
      const last = await store.lastRecord();
      const details = { file_seq: seq, database_seq: last };
      const marker = fieldsOfMarker({ action: 'audit.database_behind', seq: commonSeq, timeMs: clock.now(), details });
      const { bytes, head } = chainLines([marker], file.head);
      await file.append(bytes, head, commonSeq);
      file.suspect(
        'the database lacks records that the audit file has: the database was restored from a backup, or the file was forged',
        {
          file: seq,
          last,
          agreed: commonSeq,
        },
      );
    }
    const [record] = commonSeq === 0 ? [] : await store.recordsAfter(commonSeq - 1, 1);
    return { seq: commonSeq, id: record?.seq === commonSeq ? record.id : null };
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
