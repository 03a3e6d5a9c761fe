/** Read access to the audit log: pages, single records, and following new records. */
import type { AuditRecord, NamedRecord } from './audit.js';
import { hasProject, projectsOf } from './authority.js';
import type { AuditFilter, Clock, CommittedRecord, PageOf, PageRequest, RecordStore, Scope } from './ports.js';
import { orUnavailable, Refusal } from './refusal.js';
import { Wakeup } from './wakeup.js';

/** Filters available when following. */
export type FollowFilter = Pick<AuditFilter, 'action' | 'actor' | 'outcome' | 'projectId' | 'tokenId'>;

type Store = Pick<RecordStore, 'auditRecords' | 'auditRecord' | 'recordsAfter' | 'lastRecord' | 'onCommitted'>;

const RECORDS_PER_READ = 200;

export class AuditLog {
  readonly #store: Store;
  readonly #committed: Wakeup;

  constructor(store: Store, clock: Pick<Clock, 'after'>) {
    this.#store = store;
    this.#committed = new Wakeup(clock);
    store.onCommitted(() => {
      this.wake();
    });
  }

  /** Call when another instance may have committed records. */
  wake(): void {
    this.#committed.wake();
  }

  /** @throws {Refusal} `unavailable`; so do all methods below. */
  async records(filter: AuditFilter, page: PageRequest, scope: Scope): Promise<PageOf<NamedRecord>> {
    return orUnavailable(this.#store.auditRecords({ ...filter, among: projectsOf(scope) }, page));
  }

  async record(id: string, scope: Scope): Promise<NamedRecord> {
    const record = await orUnavailable(this.#store.auditRecord(id));
    if (!record || !isVisible(record, scope)) throw new Refusal('not_found', 'record not found');
    return record;
  }

  /** Number of the last record. */
  last(): Promise<number> {
    return orUnavailable(this.#store.lastRecord());
  }

  /** Records with numbers above `after`, in batches, including new ones as they are committed, until `signal` is aborted. */
  async *follow(
    after: number,
    filter: FollowFilter,
    signal: AbortSignal,
    scope: Scope,
  ): AsyncGenerator<CommittedRecord[]> {
    let seq = after;
    while (!signal.aborted) {
      // Before reading: a record that is committed meanwhile may be missed.
      const committed = this.#committed.wait(signal);
      let isMore: boolean;
      do {
        const records = await orUnavailable(this.#store.recordsAfter(seq, RECORDS_PER_READ));
        seq = records.at(-1)?.seq ?? seq;
        isMore = records.length === RECORDS_PER_READ && !signal.aborted;
        yield records.filter((record) => matches(record, filter) && isVisible(record, scope));
      } while (isMore);
      await committed;
    }
  }
}

const matches = (record: AuditRecord, filter: FollowFilter): boolean =>
  (['action', 'actor', 'outcome', 'projectId', 'tokenId'] as const).every(
    (name) => filter[name] === undefined || filter[name] === record[name],
  );

/** Records that belong to no project, such as those of migrations, are for callers who may see all projects. */
function isVisible({ projectId }: AuditRecord, scope: Scope): boolean {
  if (projectsOf(scope) === null) return true;
  return projectId !== null && hasProject(scope, projectId);
}
