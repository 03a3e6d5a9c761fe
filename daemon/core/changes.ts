/** Management changes: each is committed together with its numbers and its audit records. */
import type { Admission } from './admission.js';
import { AuditWriter } from './audit-writer.js';
import { auditRecord, type AuditSubject, type Caller } from './audit.js';
import type { Change, ChangeTransaction, Clock, NumberedChange, RecordStore } from './ports.js';
import { StoreConflict, StoreUnavailable } from './ports.js';
import { Refusal, unavailable } from './refusal.js';

/** An audit record, and the change for other instances, if there is one. */
export interface DoneRecord {
  audit: AuditSubject;
  change?: Change;
}

/** Result of a change: the value for the caller, and what is recorded of it, in this order. */
export interface Done<T> {
  value: T;
  records: readonly DoneRecord[];
}

export interface ChangeAttempt {
  /** Recorded if the change is refused. */
  subject: AuditSubject;
  caller: Caller;
  /** The refusal when a unique value is taken. By default `StoreConflict` is thrown. */
  taken?: (cause: Error) => Refusal;
}

export class Changes {
  readonly #store: Pick<RecordStore, 'change'>;
  readonly #admission: Pick<Admission, 'apply' | 'accounts'>;
  readonly #clock: Clock;
  readonly #audit: AuditWriter;

  constructor(
    store: Pick<RecordStore, 'change'>,
    admission: Pick<Admission, 'apply' | 'accounts'>,
    clock: Clock,
    audit: AuditWriter,
  ) {
    this.#store = store;
    this.#admission = admission;
    this.#clock = clock;
    this.#audit = audit;
  }

  /** Every change goes through here. A refusal of `work` is recorded. @throws {Refusal} `unavailable`, and those of `work`. */
  async make<T>(
    { subject, caller, taken }: ChangeAttempt,
    work: (tx: ChangeTransaction) => Promise<Done<T>>,
  ): Promise<T> {
    const attempted: Change[] = [];
    let recordedAtMs: number | undefined;
    try {
      const { value, changes } = await this.#store.change(async (tx) => {
        const { value, records } = await work(tx);
        const now = this.#clock.now();
        recordedAtMs = this.#clock.monotonic();
        const changes: NumberedChange[] = [];
        for (const { change } of records) if (change) attempted.push(change);
        const seqs = await tx.recordAll(
          records.map(({ audit, change }) => ({ record: auditRecord(audit, caller, 'success', now), change })),
        );
        for (const [i, { change }] of records.entries()) if (change) changes.push({ ...change, seq: seqs[i] ?? 0 });
        return { value, changes };
      });
      for (const change of changes) this.#admission.apply(change, recordedAtMs);
      return value;
    } catch (error) {
      // The change may be committed, if only the reply to COMMIT was lost.
      for (const change of attempted) this.#admission.accounts.forget(change);
      if (error instanceof StoreUnavailable) throw unavailable(error);
      const refusal = error instanceof StoreConflict && taken ? taken(error) : error;
      if (refusal instanceof Refusal) await this.#audit.recordRefusal(subject, caller, refusal.message);
      throw refusal;
    }
  }
}
