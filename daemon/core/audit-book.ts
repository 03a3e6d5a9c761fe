/** The audit log as it is read: page by page, one record, and as it goes on. */
import type { AuditRecord } from './audit.js';
import type { AuditFilter, CommittedRecord, PageOf, PageRequest, RecordStore } from './ports.js';
import { reading, Refusal } from './refusal.js';

/** What a follower may filter by. */
export type FollowFilter = Pick<AuditFilter, 'action' | 'actor' | 'outcome' | 'projectId' | 'tokenId'>;

type Store = Pick<RecordStore, 'auditRecords' | 'auditRecord' | 'recordsAfter' | 'lastRecord' | 'onCommitted'>;

const AT_A_TIME = 200;

export class AuditBook {
  readonly #store: Store;
  readonly #wake = new Set<() => void>();

  constructor(store: Store) {
    this.#store = store;
    store.onCommitted(() => {
      this.wake();
    });
  }

  /** There may be records that were not committed here. */
  wake(): void {
    for (const wake of this.#wake) wake();
  }

  /** @throws {Refusal} `unavailable`; so do all of these. */
  records(filter: AuditFilter, page: PageRequest): Promise<PageOf<AuditRecord>> {
    return reading(this.#store.auditRecords(filter, page));
  }

  async record(id: string): Promise<AuditRecord> {
    const record = await reading(this.#store.auditRecord(id));
    if (!record) throw new Refusal('not_found', 'record not found');
    return record;
  }

  /** The number of the last record there is. */
  last(): Promise<number> {
    return reading(this.#store.lastRecord());
  }

  /** Records of changes behind the one with this number, some at a time, those to come too, until `signal` is aborted. */
  async *follow(after: number, filter: FollowFilter, signal: AbortSignal): AsyncGenerator<CommittedRecord[]> {
    let seq = after;
    let isDue = true;
    let wake: () => void = () => undefined;
    const onCommitted = () => {
      isDue = true;
      wake();
    };
    this.#wake.add(onCommitted);
    signal.addEventListener('abort', onCommitted);
    try {
      while (!signal.aborted) {
        if (!isDue) await new Promise<void>((resolve) => (wake = resolve));
        isDue = false;
        const records = await reading(this.#store.recordsAfter(seq, AT_A_TIME));
        seq = records.at(-1)?.seq ?? seq;
        isDue ||= records.length === AT_A_TIME;
        yield records.filter((record) => passes(record, filter));
      }
    } finally {
      this.#wake.delete(onCommitted);
      signal.removeEventListener('abort', onCommitted);
    }
  }
}

const passes = (record: AuditRecord, filter: FollowFilter): boolean =>
  (['action', 'actor', 'outcome', 'projectId', 'tokenId'] as const).every(
    (name) => filter[name] === undefined || filter[name] === record[name],
  );
