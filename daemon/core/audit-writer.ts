import { auditRecord, type AuditRecord, type AuditSubject, type Caller } from './audit.js';
import type { Change, Clock, RecordStore } from './ports.js';
import { orUnavailable } from './refusal.js';

/** Writer of audit records in transactions of their own: for refused changes, and for actions outside the database. */
export class AuditWriter {
  readonly #store: Pick<RecordStore, 'change'>;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: Pick<RecordStore, 'change'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param change published to other instances. @throws {Refusal} `unavailable` when it cannot be recorded; so does `recordRefusal`. */
  recordSuccess(subject: AuditSubject, caller: Caller, change?: Change): Promise<void> {
    return this.#record(subject, caller, 'success', change);
  }

  recordRefusal(attempt: AuditSubject, caller: Caller, reason: string): Promise<void> {
    return this.#record({ ...attempt, details: { ...attempt.details, refused: reason } }, caller, 'denied');
  }

  async #record(
    subject: AuditSubject,
    caller: Caller,
    outcome: AuditRecord['outcome'],
    change?: Change,
  ): Promise<void> {
    const record = auditRecord(subject, caller, outcome, this.#clock.now());
    await orUnavailable(this.#store.change((tx) => tx.record(record, change)));
  }
}
