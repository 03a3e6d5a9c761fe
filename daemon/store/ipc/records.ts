/**
 * The records of completed requests on their way from a worker to its primary, which does all that follows from them: usage, events, audit, metrics.
 *
 * **Bounded.** While the primary does not accept them, up to `MAX_WAITING_CHARACTERS` wait; further records are dropped, and their number is logged.
 */
import type { RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';
import { charactersOf, encoded, type RecordBatch } from './record-batch.js';

/** So that one message carries the records of many requests. Readers of figures do not wait for it (`flush`), only followers of events. */
const GATHER_MS = 50;
const MAX_WAITING_CHARACTERS = 32_000_000;
const MAX_GATHERED = 256;

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
