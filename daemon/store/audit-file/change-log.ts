/**
 * The copy of the records of changes in a file: all that are committed, in the order of their numbers, once each. Where it
 * stands is what the file itself says at its end, so that whatever a crash left out of it follows at the next start. The
 * database is the one that keeps them; nothing is lost when the file cannot be written, only late.
 *
 * With every look for new records the last one that was copied is read again. If the database has another one in its place, or none, it was
 * put back, or a replica took over: the copy goes on behind the last record that both have, once, and a marker in the chain says so.
 */
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import { SingleRun } from '../../core/single-run.js';
import { agreedPlace } from './agreement.js';
import type { AuditFile } from './audit-file.js';
import { type Anchor, chained } from './chain.js';
import { fieldsOfRecord } from './fields.js';
import { fieldsOfMarker } from './marker.js';

const AT_A_TIME = 500;
const RETRY_MS = 1_000;

export interface ChangeLogOptions {
  file: AuditFile;
  store: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  /** How far the file is known to have reached. */
  lastAnchor: () => Promise<Anchor | null>;
  clock: Clock;
  log: Log;
}

export class ChangeLog {
  readonly #options: ChangeLogOptions;
  readonly #copying = new SingleRun(() => {
    if (this.#isBehind) this.wake(); // By what was committed just now.
  });
  #isBehind = false;
  #hasBegun = false;
  #isClosed = false;
  #cancelRetry: (() => void) | null = null;
  /** The last record that the file and the database are known to share; null until they were compared. */
  #last: { seq: number; id: string | null } | null = null;

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
    await this.#copying.current;
  }

  /** There may be something to copy. */
  wake(): void {
    this.#isBehind = true;
    if (!this.#hasBegun || this.#isClosed || this.#cancelRetry) return;
    void this.#copying.run(() => this.#copy());
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
    const last = (this.#last ??= await this.#agree());
    const records = await store.recordsAfter(Math.max(0, last.seq - 1), AT_A_TIME);
    const again = last.id === null ? null : records.shift();
    if (again !== null && (again?.seq !== last.seq || again.id !== last.id)) {
      this.#last = await this.#agree();
      return true;
    }
    if (records.length === 0) {
      file.settle();
      return false;
    }
    const { bytes, head } = chained(records.map(fieldsOfRecord), file.head);
    const copied = records.at(-1);
    this.#last = null; // What a write that fails has left in the file is to be seen.
    await file.append(bytes, head, copied?.seq);
    this.#last = copied ? { seq: copied.seq, id: copied.id } : null;
    return records.length >= AT_A_TIME - 1;
  }

  /** Finds the last record that the file and the database share, and says in the file if that is not the last it has. */
  async #agree(): Promise<{ seq: number; id: string | null }> {
    const { file, store, lastAnchor, clock } = this.#options;
    const { seq, path } = file;
    const place = seq === null ? 0 : await agreedPlace(seq, { path, store, anchor: await lastAnchor() });
    if (seq !== null && place < seq) {
      const last = await store.lastRecord();
      const details = { file_seq: seq, database_seq: last };
      const marker = fieldsOfMarker({ action: 'audit.database_behind', seq: place, timeMs: clock.now(), details });
      const { bytes, head } = chained([marker], file.head);
      await file.append(bytes, head, place);
      file.suspect('the database lacks records that the audit file has: it was put back, or the file was forged', {
        file: seq,
        last,
        agreed: place,
      });
    }
    const [record] = place === 0 ? [] : await store.recordsAfter(place - 1, 1);
    return { seq: place, id: record?.seq === place ? record.id : null };
  }

  /** Copies what there is still to copy, unless that cannot be done now. */
  async close(): Promise<void> {
    const { file } = this.#options;
    if (file.whyFailing === null) {
      while (this.#copying.current) await this.#copying.current;
    }
    this.#isClosed = true;
    this.#cancelRetry?.();
  }
}
