/** The stream of events as one consumer of the group sees it. */
import type { Clock, Log } from '../core/ports.js';
import type { RedisAddress } from '../store/redis/address.js';
import { type Argument, RedisConnection, type Script } from '../store/redis/connection.js';
import { BlockingReader } from './blocking-reader.js';
import type { Entry } from './entry.js';
import * as groupScripts from './group-scripts.js';
import * as scripts from './scripts.js';

export const GROUP = 'llmp-dispatchers';
export const MOST_DELIVERIES = 5;
/** What was taken twice and never answered for may be what ended its dispatcher: it is taken alone, so that no other gets the blame. */
const ALONE_FROM_DELIVERIES = 2;
const COMMAND_MS = 2_000;
const AT_ONCE = 200; // Entries in a script: Redis does nothing else meanwhile.

export interface StreamOptions {
  address: RedisAddress;
  key: string;
  consumer: string;
  /** How many dead letters are kept. */
  mostDead: number;
  clock: Clock;
  log: Log;
}

/** What became of an entry that was to be taken for a delivery. */
export type Taken =
  | { kind: 'taken'; id: string; deliveries: number; fields: string[] }
  /** It was delivered so often that it is to be taken alone, and was left. */
  | { kind: 'alone'; id: string }
  /** It was delivered too often, and is a dead letter now. */
  | { kind: 'dead'; id: string; deadLettersLost: number }
  /** It is no more in the stream. */
  | { kind: 'trimmed'; id: string }
  /** It is another's, or was acknowledged. */
  | { kind: 'lost'; id: string };

export interface Measured {
  /** Events that no dispatcher has read; null where Redis, before 7, does not tell. */
  lag: number | null;
  pending: number;
  /** Events that were trimmed before anybody read them, since somebody last asked. */
  trimmedUnread: number;
  deadLetters: number;
}

export class EventStream {
  readonly connection: RedisConnection;
  readonly #options: StreamOptions;
  readonly #reader: BlockingReader;

  constructor(options: StreamOptions) {
    const { address, key, consumer, clock, log } = options;
    this.#options = options;
    this.connection = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS });
    this.#reader = new BlockingReader(address, { key, group: GROUP, consumer });
  }

  /** @returns whether there was none. */
  async createGroup(): Promise<boolean> {
    return (await this.#run(groupScripts.CREATE_GROUP)) === 1;
  }

  /** What no dispatcher has read yet; each delivery of it is counted as the first. */
  readNew(count: number, blockMs: number): Promise<Entry[]> {
    return this.#reader.read(count, blockMs);
  }

  /** Ids of entries that are pending for this consumer, in order, from the one behind `after` on. */
  async listOwn(after: string, count: number): Promise<string[]> {
    const listed = (await this.#run(scripts.LIST_OWN, after, count)) as [Buffer, number][];
    return listed.map(([id]) => id.toString());
  }

  /** Makes this consumer's what nobody has answered for in `idleMs`. */
  async claim(idleMs: number, cursor: string, count: number) {
    const reply = (await this.#run(scripts.CLAIM, idleMs, cursor, count)) as [Buffer, Buffer[], number];
    return { next: reply[0].toString(), ids: reply[1].map(String), trimmed: reply[2] };
  }

  /** Takes own pending entries for a delivery each. */
  async take(ids: readonly string[], how: 'together' | 'alone'): Promise<Taken[]> {
    const { mostDead } = this.#options;
    const isAlone = how === 'alone' ? 1 : 0;
    const limits = [this.#deadKey, mostDead, MOST_DELIVERIES, ALONE_FROM_DELIVERIES, isAlone];
    const reply = await this.#run(scripts.TAKE, ...limits, ...ids);
    return (reply as [Buffer, Buffer, number?, Buffer[]?, number?][]).map(takenFrom);
  }

  /** Says that entries are still in hand, and how often each was delivered. @returns those that another one has taken over. */
  hold(counts: ReadonlyMap<string, number>): Promise<string[]> {
    return this.#holdAs(0, counts);
  }

  /** Leaves entries to whoever comes first. */
  async release(counts: ReadonlyMap<string, number>): Promise<void> {
    await this.#holdAs(RELEASED_IDLE_MS, counts);
  }

  async acknowledge(ids: readonly string[]): Promise<void> {
    for (const some of chunks(ids)) await this.#run(scripts.ACKNOWLEDGE, ...some);
  }

  /** Makes a dead letter of an event, and acknowledges it. @returns how many older dead letters had to make room. */
  async setAside(id: string, deliveries: number, why: string, json: string): Promise<number> {
    const { mostDead } = this.#options;
    const args = [this.#deadKey, mostDead, id, deliveries, why, json];
    return Math.max(0, (await this.#run(scripts.SET_EVENT_ASIDE, ...args)) as number);
  }

  async measure(): Promise<Measured> {
    const reply = (await this.#run(groupScripts.MEASURE, this.#deadKey)) as [number, number, number, number];
    const [lag, pending, trimmedUnread, deadLetters] = reply;
    return { lag: lag < 0 ? null : lag, pending, trimmedUnread: Math.max(0, trimmedUnread), deadLetters };
  }

  /** Removes consumers that were not seen for so long and have nothing pending. */
  async dropIdleConsumers(idleMs: number): Promise<void> {
    await this.#run(groupScripts.DROP_CONSUMERS, idleMs);
  }

  /** Removes this consumer, unless something is pending for it. */
  async leave(): Promise<void> {
    await this.#run(groupScripts.DROP_CONSUMERS, -1);
  }

  /** Puts all dead letters that there are back into the stream. @returns how many. */
  async replayDead(): Promise<number> {
    const newest = (await this.#run(groupScripts.NEWEST_DEAD, this.#deadKey)) as Buffer | null;
    if (!newest) return 0;
    for (let replayed = 0; ;) {
      const some = (await this.#run(groupScripts.REPLAY, this.#deadKey, newest.toString(), AT_ONCE)) as number;
      replayed += some;
      if (some === 0) return replayed;
    }
  }

  /** Ends a read that waits. */
  stopReading(): void {
    this.#reader.close();
  }

  close(): void {
    this.#reader.close();
    this.connection.close();
  }

  get #deadKey(): string {
    return `${this.#options.key}:dead`;
  }

  #run(script: Script, ...args: Argument[]): Promise<unknown> {
    const { key, consumer } = this.#options;
    return this.connection.run(script, [key, GROUP, consumer, ...args]);
  }

  async #holdAs(idleMs: number, counts: ReadonlyMap<string, number>): Promise<string[]> {
    const lost: string[] = [];
    for (const some of chunks([...counts])) {
      const reply = (await this.#run(scripts.HOLD, idleMs, ...some.flat())) as Buffer[];
      lost.push(...reply.map(String));
    }
    return lost;
  }
}

const RELEASED_IDLE_MS = 86_400_000; // Longer than anybody waits before taking over.

function* chunks<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += AT_ONCE) yield all.slice(at, at + AT_ONCE);
}

function takenFrom([id, what, deliveries = 0, fields = [], deadLettersLost = 0]: [
  Buffer,
  Buffer,
  number?,
  Buffer[]?,
  number?,
]): Taken {
  const its = { id: id.toString() };
  switch (what.toString()) {
    case 'taken':
      return { kind: 'taken', ...its, deliveries, fields: fields.map(String) };
    case 'alone':
      return { kind: 'alone', ...its };
    case 'dead':
      return { kind: 'dead', ...its, deadLettersLost };
    case 'trimmed':
      return { kind: 'trimmed', ...its };
    default:
      return { kind: 'lost', ...its };
  }
}
