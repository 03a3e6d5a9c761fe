import { auditRecord, type AuditRecord, type AuditSubject, type Caller } from './audit.js';
import type { Change, Clock, RecordStore } from './ports.js';
import { reading } from './refusal.js';

/** Audit records that stand for themselves: of what was refused, and of what was done elsewhere than in the database. */
export class Trail {
  readonly #store: Pick<RecordStore, 'change'>;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: Pick<RecordStore, 'change'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param change what others must hear of it. @throws {Refusal} `unavailable` when it cannot be recorded; so do all of these. */
  done(subject: AuditSubject, caller: Caller, change?: Change): Promise<void> {
    return this.#record(subject, caller, 'success', change);
  }

  refused(attempt: AuditSubject, caller: Caller, why: string): Promise<void> {
    return this.#record({ ...attempt, details: { ...attempt.details, refused: why } }, caller, 'denied');
  }

  async #record(
    subject: AuditSubject,
    caller: Caller,
    outcome: AuditRecord['outcome'],
    change?: Change,
  ): Promise<void> {
    const record = auditRecord(subject, caller, outcome, this.#clock.now());
    await reading(this.#store.change((tx) => tx.record(record, change)));
  }
}
