/**
 * The records of completed requests on their way from a worker to its primary, which does all that follows from them: usage, events, audit, metrics.
 *
 * **Bounded.** While the primary does not accept them, up to `MAX_WAITING_CHARACTERS` wait; further records are dropped, and their number is logged.
 */
import { NO_CONTENT_FACTS, type RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';

/** So that one message carries the records of several requests. */
const GATHER_MS = 5;
const MAX_WAITING_CHARACTERS = 32_000_000;
const MAX_GATHERED = 256;

/** All fields of a record, in the order in which they travel: without their names, which are most of the text. */
const FIELDS = Object.keys({
  requestId: 0,
  timeMs: 0,
  projectId: 0,
  projectName: 0,
  tokenId: 0,
  tokenName: 0,
  obfuscated: 0,
  clientIp: 0,
  method: 0,
  path: 0,
  status: 0,
  code: 0,
  problem: 0,
  outcome: 0,
  isForwarded: 0,
  cache: 0,
  durationMs: 0,
  upstreamMs: 0,
  firstByteMs: 0,
  bytesIn: 0,
  bytesOut: 0,
  streamed: 0,
  upstreamRequestId: 0,
  model: 0,
  usage: 0,
  requestBody: 0,
  responseBody: 0,
} satisfies Record<keyof RequestEnded, 0>) as (keyof RequestEnded)[];

export const encoded = (records: readonly RequestEnded[]): string =>
  JSON.stringify(records.map((record) => FIELDS.map((field) => record[field])));

export const decoded = (text: string): RequestEnded[] =>
  (JSON.parse(text) as unknown[][]).map((values) => {
    const record = { ...NO_CONTENT_FACTS } as Record<keyof RequestEnded, unknown>;
    for (const [at, field] of FIELDS.entries()) record[field] = values[at];
    return record as unknown as RequestEnded;
  });

export interface EndedRecordsOptions {
  /** Resolves when the primary has taken them. */
  send: (text: string) => Promise<unknown>;
  clock: Pick<Clock, 'after'>;
  log: Pick<Log, 'warn'>;
}

export class EndedRecords {
  readonly #options: EndedRecordsOptions;
  #gathered: RequestEnded[] = [];
  #isGathering = false;
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
    } else if (!this.#isGathering) {
      this.#isGathering = true;
      this.#options.clock.after(GATHER_MS, () => {
        this.#isGathering = false;
        this.flush();
      });
    }
  };

  /** Sends the records that have been gathered. */
  flush(): void {
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
    const text = encoded(records);
    this.#waitingCharacters += text.length;
    const sent: Promise<void> = this.#options
      .send(text)
      .catch(() => undefined)
      .then(() => {
        this.#waitingCharacters -= text.length;
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
