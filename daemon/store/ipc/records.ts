/**
 * The records of completed requests on their way from a worker to its primary, which does all that follows from them: usage, events, audit, metrics.
 *
 * **Bounded.** While the primary does not accept them, up to `MAX_WAITING_CHARACTERS` wait; further records are dropped, and their number is logged.
 */
import type { RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';
import { NUMBERS, putNumbers, putTexts, recordFrom, REQUEST_ID, TEXTS, UPSTREAM_REQUEST_ID } from '../ended-columns.js';

/** So that one message carries the records of many requests. Readers of figures do not wait for it (`flush`), only followers of events. */
const GATHER_MS = 50;
const MAX_WAITING_CHARACTERS = 32_000_000;
const MAX_GATHERED = 256;

/** Longer texts are not compared with others: V8 does not hash those above 16,383 characters, so that each of them is compared with all. */
const MAX_SHARED_LENGTH = 256;
/** Its texts and the two bodies. */
const PLACES = TEXTS + 2;

/** Records in columns. A short text that several of them have is there once. */
export interface RecordBatch {
  texts: readonly string[];
  /** `PLACES` for each record: 1 + the place in `texts`, 0 for null. */
  places: Uint16Array;
  /** `NUMBERS` for each record. */
  numbers: Float64Array;
}

/** @param records at most `MAX_GATHERED`. */
export function encoded(records: readonly RequestEnded[]): RecordBatch {
  const texts: string[] = [];
  const places = new Uint16Array(records.length * PLACES);
  const numbers = new Float64Array(records.length * NUMBERS);
  const known = new Map<string, number>();
  const row: (string | null)[] = [];
  let place = 0;
  for (const [index, ended] of records.entries()) {
    putTexts(ended, row, 0);
    putNumbers(ended, numbers, index * NUMBERS);
    for (let column = 0; column < TEXTS; column++) {
      const text = row[column] ?? null;
      if (text !== null) places[place] = isShared(column, text) ? placeOf(text) : texts.push(text);
      place++;
    }
    if (ended.requestBody !== null) places[place] = texts.push(ended.requestBody);
    if (ended.responseBody !== null) places[place + 1] = texts.push(ended.responseBody);
    place += 2;
  }
  return { texts, places, numbers };

  function placeOf(text: string): number {
    let found = known.get(text);
    if (found === undefined) known.set(text, (found = texts.push(text)));
    return found;
  }
}

const isShared = (column: number, { length }: string) =>
  column !== REQUEST_ID && column !== UPSTREAM_REQUEST_ID && length <= MAX_SHARED_LENGTH;

export function decoded({ texts, places, numbers }: RecordBatch): RequestEnded[] {
  const row: (string | null)[] = [];
  const textAt = (place: number): string | null => texts[(places[place] ?? 0) - 1] ?? null;
  return Array.from({ length: numbers.length / NUMBERS }, (_, index) => {
    const first = index * PLACES;
    for (let column = 0; column < TEXTS; column++) row[column] = textAt(first + column);
    const record = recordFrom(row, 0, numbers, index * NUMBERS);
    record.requestBody = textAt(first + TEXTS);
    record.responseBody = textAt(first + TEXTS + 1);
    return record;
  });
}

/** About the memory that it takes, as a number of characters. */
const charactersOf = ({ texts, places, numbers }: RecordBatch): number =>
  texts.reduce((sum, { length }) => sum + length, places.length + numbers.length * 4);

export interface EndedRecordsOptions {
  /** Resolves when the primary has taken them. */
  send: (batch: RecordBatch) => Promise<unknown>;
  clock: Pick<Clock, 'after'>;
  log: Pick<Log, 'warn'>;
}

export class EndedRecords {
  readonly #options: EndedRecordsOptions;
  #gathered: RequestEnded[] = [];
  #cancelTimer: (() => void) | null = null;
  #waitingCharacters = 0;
  readonly #sent = new Set<Promise<void>>();
  #dropped = 0;

  constructor(options: EndedRecordsOptions) {
    this.#options = options;
  }

  readonly record = (ended: RequestEnded): void => {
    this.#gathered.push(ended);
    if (this.#gathered.length >= MAX_GATHERED) {
      this.flush();
    } else {
      this.#cancelTimer ??= this.#options.clock.after(GATHER_MS, () => {
        this.flush();
      });
    }
  };

  /** Sends the records that have been gathered. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const records = this.#gathered;
    if (records.length === 0) return;
    this.#gathered = [];
    if (this.#waitingCharacters > MAX_WAITING_CHARACTERS) {
      if (this.#dropped === 0) this.#options.log.warn('the primary does not take records of requests; dropping them');
      this.#dropped += records.length;
      return;
    }
    if (this.#dropped > 0) {
      this.#options.log.warn('records of requests were dropped', { requests: this.#dropped });
      this.#dropped = 0;
    }
    const batch = encoded(records);
    const characters = charactersOf(batch);
    this.#waitingCharacters += characters;
    const sent: Promise<void> = this.#options
      .send(batch)
      .catch(() => undefined)
      .then(() => {
        this.#waitingCharacters -= characters;
        this.#sent.delete(sent);
      });
    this.#sent.add(sent);
  }

  /** At shutdown. Resolves when the primary has taken all records. */
  async close(): Promise<void> {
    this.flush();
    await Promise.all(this.#sent);
  }
}
