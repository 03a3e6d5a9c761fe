/** Whether the lines of changes say the same as the database: each committed record once, in its order, with equal content. */
import type { CommittedRecord } from '../../core/ports.js';
import { fieldsOfRecord } from './fields.js';
import { isMarker } from './marker.js';
import type { FoundLine } from './reading.js';
import type { Fault } from './verification.js';

const AT_A_TIME = 500;
const MOST_PENDING = 1_000;
const LINK = /^\{"line":\d+,"prev":"[0-9a-f]{64}",/;

type RecordsAfter = (seq: number, limit: number) => Promise<CommittedRecord[]>;

interface Line {
  number: number;
  file: string;
  at: number;
  seq: number;
  fields: string;
  isMarker: boolean;
}

export class RecordCheck {
  readonly #recordsAfter: RecordsAfter;
  /** The place of the record that must come next; null until the first one. */
  #next: number | null;
  #waiting: Line[] = [];
  /** What is wrong, unless a marker that is still to come says why. */
  #pending: { seq: number; fault: Fault }[] = [];

  /** @param isWhole whether the lines begin with the first record there is. */
  constructor(recordsAfter: RecordsAfter, isWhole: boolean) {
    this.#recordsAfter = recordsAfter;
    this.#next = isWhole ? 1 : null;
  }

  /** @param number the number of the line. */
  async take(number: number, found: FoundLine): Promise<void> {
    const line = recordLineOf(number, found);
    if (!line) return;
    this.#waiting.push(line);
    if (this.#waiting.length === AT_A_TIME) await this.#compare();
  }

  /** @param last the place of the last record that must be there; null: the lines are not all there are. @param behind the number of the line that would come next. */
  async fault(last: number | null, behind: number): Promise<Fault | null> {
    await this.#compare();
    const missing = last === null ? null : await this.#firstIn(this.#next ?? 1, last);
    if (missing !== null) this.#pend(missing, { ...missingAt(missing), line: behind });
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
      this.#pend(seq, { kind: 'foreign_record', line: number, file, at, detail: String(seq) });
      return;
    }
    if (seq < next) this.#pend(seq, { kind: 'inserted', line: number, file, at });
    const missing = await this.#firstIn(next, seq - 1);
    if (missing !== null) this.#pend(missing, { ...missingAt(missing), line: number, file, at });
    this.#next = Math.max(next, seq + 1);
  }

  /** The copy went on behind an earlier record: what the file has beyond it was not the database's any more. */
  async #goBack({ seq, number, file, at }: Line, next: number): Promise<void> {
    const missing = await this.#firstIn(next, seq);
    if (missing !== null) this.#pend(missing, { ...missingAt(missing), line: number, file, at });
    this.#pending = this.#pending.filter((each) => each.seq <= seq);
    this.#next = seq + 1;
  }

  #pend(seq: number, fault: Fault): void {
    if (this.#pending.length < MOST_PENDING || seq <= (this.#pending.at(-1)?.seq ?? 0))
      this.#pending.push({ seq, fault });
  }

  /** @returns the place of the first record in the database from one place to another, both included. */
  async #firstIn(from: number, to: number): Promise<number | null> {
    if (from > to) return null;
    const [record] = await this.#recordsAfter(from - 1, 1);
    return record && record.seq <= to ? record.seq : null;
  }

  async #recordsOf(lines: readonly Line[]): Promise<Map<number, CommittedRecord>> {
    const found = new Map<number, CommittedRecord>();
    // Lines are in the order of their records: one look is enough for most of them.
    let [from, to] = [Infinity, -Infinity];
    for (const { seq, isMarker } of lines) {
      if (isMarker || (seq >= from && seq <= to)) continue;
      const records = await this.#recordsAfter(seq - 1, AT_A_TIME);
      for (const record of records) found.set(record.seq, record);
      from = seq;
      to = records.length < AT_A_TIME ? Infinity : (records.at(-1)?.seq ?? seq);
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

function recordLineOf(number: number, { bytes, file, at }: FoundLine): Line | null {
  const text = bytes.toString();
  try {
    const parsed = JSON.parse(text) as Record<string, unknown>;
    const { seq } = parsed;
    // A marker of a file that holds no record yet stands for no place.
    if (seq === undefined && isMarker(parsed)) return null;
    const place = Number.isSafeInteger(seq) ? (seq as number) : -1;
    return { number, file, at, seq: place, fields: text.replace(LINK, ''), isMarker: isMarker(parsed) };
  } catch {
    return null; // Torn by a crash: its record follows.
  }
}
