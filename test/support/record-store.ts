import type { AuditRecord } from '../../daemon/core/audit.js';
import type { ChangeTransaction, RecordStore } from '../../daemon/core/ports.js';

/** Stores audit records by transaction. A transaction commits when `held` does, and fails with it. */
export class AuditSink implements Pick<RecordStore, 'change'> {
  readonly transactions: AuditRecord[][] = [];
  held: Promise<void> = Promise.resolve();

  get records(): AuditRecord[] {
    return this.transactions.flat();
  }

  async change<T>(work: (tx: ChangeTransaction) => Promise<T>): Promise<T> {
    const records: AuditRecord[] = [];
    const tx: Pick<ChangeTransaction, 'record'> = {
      record(record) {
        return Promise.resolve(records.push(record));
      },
    };
    const result = await work(tx as ChangeTransaction);
    await this.held;
    this.transactions.push(records);
    return result;
  }
}
