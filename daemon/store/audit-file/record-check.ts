/** Comparison of the change log with the database: each committed record once, in order, with equal content. */
import type { CommittedRecord } from '../../core/ports.js';
import { fieldsOfRecord, type RecordLine, recordLineOf } from './fields.js';
import type { FoundLine } from './lines.js';
import type { Fault } from './verification.js';

const BATCH_SIZE = 500;
const MAX_PENDING = 1_000;

type RecordsAfter = (seq: number, limit: number) => Promise<CommittedRecord[]>;

interface Line extends RecordLine {
  /** The number in its link. */
  number: number;
  file: string;
  at: number;
}

export class RecordCheck {
  readonly #recordsAfter: RecordsAfter;
  /** Sequence number of the next expected record; null before the first one. */
  #next: number | null;
  #waiting: Line[] = [];
  /** Faults, which a later marker may still explain. */
  #pending: { seq: number; fault: Fault }[] = [];

  /** @param isWhole whether the lines begin with the very first record. */
  constructor(recordsAfter: RecordsAfter, isWhole: boolean) {
    this.#recordsAfter = recordsAfter;
    this.#next = isWhole ? 1 : null;
  }

  /** @param number the line number. */
  async take(number: number, found: FoundLine): Promise<void> {
    const line = recordLineOf(found.bytes);
    if (!line) return; // If it is incomplete after a crash, its record follows again.
    const { file, at } = found;
    this.#waiting.push({ ...line, number, file, at });
    if (this.#waiting.length === BATCH_SIZE) await this.#compare();
  }

  /**
   * @param last sequence number of the last record that must be present; null if there are later lines. @param nextLine the number
   * that the next line would have.
   */
  async fault(last: number | null, nextLine: number): Promise<Fault | null> {
    await this.#compare();
    const missing = last === null ? null : await this.#firstIn(this.#next ?? 1, last);
    if (missing !== null) this.#addPending(missing, { ...missingAt(missing), line: nextLine });
    return this.#pending[0]?.fault ?? null;
  }

  async #compare(): Promise<void> {
    const lines = this.#waiting;
    this.#waiting = [];
    const records = await this.#recordsOf(lines);
    for (const line of lines) {
      this.#next ??= line.isMarker ? line.seq + 1 : line.seq;
      if (line.isMarker) await this.#goBack(line, this.#next);
      else await this.#compareLine(line, records.get(line.seq), this.#next);
    }
  }

  async #compareLine({ seq, fields, number, file, at }: Line, record: CommittedRecord | undefined, next: number) {
    if (!record || fieldsOfRecord(record) !== fields) {
      this.#addPending(seq, { kind: 'foreign_record', line: number, file, at, detail: String(seq) });
      return;
    }
    if (seq < next) this.#addPending(seq, { kind: 'inserted', line: number, file, at });
    const missing = await this.#firstIn(next, seq - 1);
    if (missing !== null) this.#addPending(missing, { ...missingAt(missing), line: number, file, at });
    this.#next = Math.max(next, seq + 1);
  }

  /** A marker: the copy continued after an earlier record. The lines after that record are no longer in the database. */
  async #goBack({ seq, number, file, at }: Line, next: number): Promise<void> {
    const missing = await this.#firstIn(next, seq);
    if (missing !== null) this.#addPending(missing, { ...missingAt(missing), line: number, file, at });
    this.#pending = this.#pending.filter((each) => each.seq <= seq);
    this.#next = seq + 1;
  }

  #addPending(seq: number, fault: Fault): void {
    if (this.#pending.length < MAX_PENDING || seq <= (this.#pending.at(-1)?.seq ?? 0))
      this.#pending.push({ seq, fault });
  }

  /** @returns sequence number of the first record of the database in this range, both ends included. */
  async #firstIn(from: number, to: number): Promise<number | null> {
    if (from > to) return null;
    const [record] = await this.#recordsAfter(from - 1, 1);
    return record && record.seq <= to ? record.seq : null;
  }

  async #recordsOf(lines: readonly Line[]): Promise<Map<number, CommittedRecord>> {
    const found = new Map<number, CommittedRecord>();
    // Lines are in the order of their records, so one query is enough for most of them.
    let [from, to] = [Infinity, -Infinity];
    for (const { seq, isMarker } of lines) {
      if (isMarker || (seq >= from && seq <= to)) continue;
      const records = await this.#recordsAfter(seq - 1, BATCH_SIZE);
      for (const record of records) found.set(record.seq, record);
      from = seq;
      to = records.length < BATCH_SIZE ? Infinity : (records.at(-1)?.seq ?? seq);
    }
    return found;
  }
}

const missingAt = (seq: number): Fault => ({
  kind: 'missing_record',
  line: 0,
  file: null,
  at: null,
  detail: String(seq),
});
