/**
 * The records of completed requests on their way from a worker to its primary, which does all that follows from them: usage, events, audit, metrics.
 *
 * **Bounded.** While the primary does not accept them, up to `MAX_WAITING_CHARACTERS` wait; further records are dropped, and their number is logged.
 */
import type { RequestEnded } from '../../core/events.js';
import type { Clock, Log } from '../../core/ports.js';

/** So that one message carries the records of many requests. Readers of figures do not wait for it (`flush`), only followers of events. */
const GATHER_MS = 50;
const MAX_WAITING_CHARACTERS = 32_000_000;
const MAX_GATHERED = 256;

/** The values of a record, in the order in which they travel: without their names, which are most of the text. */
function valuesOf(it: RequestEnded) {
  return [
    it.requestId,
    it.timeMs,
    it.projectId,
    it.projectName,
    it.tokenId,
    it.tokenName,
    it.obfuscated,
    it.clientIp,
    it.method,
    it.path,
    it.status,
    it.code,
    it.problem,
    it.outcome,
    it.isForwarded,
    it.cache,
    it.durationMs,
    it.upstreamMs,
    it.firstByteMs,
    it.bytesIn,
    it.bytesOut,
    it.streamed,
    it.upstreamRequestId,
    it.model,
    it.usage,
    it.requestBody,
    it.responseBody,
  ] as const;
}

type Values = ReturnType<typeof valuesOf>;

export const encoded = (records: readonly RequestEnded[]): string => JSON.stringify(records.map(valuesOf));

export const decoded = (text: string): RequestEnded[] => (JSON.parse(text) as Values[]).map(recordOf);

// As a literal, so that all records have one hidden class, as those of the proxy have.
const recordOf = (values: Values): RequestEnded => ({
  requestId: values[0],
  timeMs: values[1],
  projectId: values[2],
  projectName: values[3],
  tokenId: values[4],
  tokenName: values[5],
  obfuscated: values[6],
  clientIp: values[7],
  method: values[8],
  path: values[9],
  status: values[10],
  code: values[11],
  problem: values[12],
  outcome: values[13],
  isForwarded: values[14],
  cache: values[15],
  durationMs: values[16],
  upstreamMs: values[17],
  firstByteMs: values[18],
  bytesIn: values[19],
  bytesOut: values[20],
  streamed: values[21],
  upstreamRequestId: values[22],
  model: values[23],
  usage: values[24],
  requestBody: values[25],
  responseBody: values[26],
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
