import type { Clock, Log } from '../core/ports.js';
import type { EventJson } from '../store/event-json.js';
import type { RedisAddress } from '../store/redis/address.js';
import { type Argument, RedisConnection, RedisUnavailable, type Script } from '../store/redis/connection.js';
import { DISPATCHER_GROUP as GROUP, stateOfStream, type StreamState } from '../store/redis/stream-state.js';
import type { Delivery } from './backends/backend.js';
import * as scripts from './scripts.js';

export const MAX_DELIVERIES = 5;
/** An event that was taken twice and never acknowledged may have crashed its dispatcher: it is taken alone, so that no other event is blamed. */
const ALONE_FROM_DELIVERIES = 2;
const COMMAND_MS = 2_000;
const READ_MS = 6_000; // Much longer than a read blocks, because the machine may be busy.
const ENTRIES_PER_SCRIPT = 200; // Redis runs nothing else while a script runs.

export interface StreamOptions {
  address: RedisAddress;
  key: string;
  consumer: string;
  /** Maximum number of dead letters. */
  maxDeadLetters: number;
  clock: Clock;
  log: Log;
}

type ReadReply = [key: Buffer, entries: [id: Buffer, fields: Buffer[] | null][]][] | null;

/** Result of taking an entry for a delivery. */
export type TakeResult =
  | { kind: 'taken'; id: string; deliveries: number; fields: string[] }
  /** Not taken: it was delivered so often that it must be taken alone. */
  | { kind: 'alone'; id: string }
  /** It was delivered too often, and was moved to the dead letters. */
  | { kind: 'dead'; id: string; deadLettersLost: number }
  /** It is no longer in the stream. */
  | { kind: 'trimmed'; id: string }
  /** Another consumer took it over, or it was acknowledged. */
  | { kind: 'lost'; id: string };

export interface Measured extends StreamState {
  deadLetters: number;
}

/** Redis stream of events, from the view of one consumer of the group. */
export class EventStream {
  readonly connection: RedisConnection;
  readonly #options: StreamOptions;
  /** Its own connection, because a blocking read delays all later commands. */
  readonly #reader: RedisConnection;

  constructor(options: StreamOptions) {
    const { address, clock, log } = options;
    this.#options = options;
    this.connection = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS });
    this.#reader = new RedisConnection({ address, clock, log, commandMs: READ_MS, purpose: 'dispatcher-reader' });
  }

  /** Resolves after the first connection attempt, within about half a second, whether it succeeded or not. */
  async open(): Promise<void> {
    await Promise.all([this.connection.open(), this.#reader.open()]);
  }

  /** @returns whether the group did not exist. */
  async createGroup(): Promise<boolean> {
    return (await this.#run(scripts.CREATE_GROUP)) === 1;
  }

  /**
   * Reads entries that no dispatcher has read yet. Redis counts this as their first delivery. After an error, it may have made entries pending for
   * this consumer.
   *
   * @param blockMs how long to wait for the first entry; 0 to not wait.
   */
  async readNew(count: number, blockMs: number): Promise<Entry[]> {
    const { key, consumer } = this.#options;
    if (!this.#reader.isReady) throw new RedisUnavailable('Redis is unavailable');
    const block = blockMs > 0 ? ['BLOCK', blockMs] : [];
    try {
      const reply = (await this.#reader.call('XREADGROUP', [
        ...['GROUP', GROUP, consumer, 'COUNT', count],
        ...block,
        ...['STREAMS', key, '>'],
      ])) as ReadReply;
      return (reply?.[0]?.[1] ?? []).map(([id, fields]) => ({
        id: id.toString(),
        fields: fields?.map(String) ?? null,
      }));
    } catch (error) {
      // Redis may still execute it, and make entries pending that nobody delivers until they are claimed.
      if (error instanceof RedisUnavailable) this.#reader.abandon(error);
      throw error;
    }
  }

  /** IDs of the entries that are pending for this consumer, in order, starting after `after`. */
  async listOwn(after: string, count: number): Promise<string[]> {
    const { key, consumer } = this.#options;
    const args = [key, GROUP, after, '+', count, consumer];
    const listed = (await this.connection.call('XPENDING', args)) as [Buffer, ...unknown[]][];
    return listed.map(([id]) => id.toString());
  }

  /** Claims entries that their consumer has not acknowledged for `idleMs`; this does not count as a delivery. */
  async claim(idleMs: number, cursor: string, count: number) {
    const { key, consumer } = this.#options;
    const args = [key, GROUP, consumer, idleMs, cursor, 'COUNT', count, 'JUSTID'];
    const reply = (await this.connection.call('XAUTOCLAIM', args)) as [Buffer, Buffer[], Buffer[]?];
    return { next: reply[0].toString(), ids: reply[1].map(String), trimmed: reply[2]?.length ?? 0 };
  }

  /** Takes own pending entries for delivery; Redis counts one delivery for each. */
  async take(ids: readonly string[], how: 'together' | 'alone'): Promise<TakeResult[]> {
    const { maxDeadLetters } = this.#options;
    const isAlone = how === 'alone' ? 1 : 0;
    const limits = [this.#deadKey, maxDeadLetters, MAX_DELIVERIES, ALONE_FROM_DELIVERIES, isAlone];
    const reply = await this.#run(scripts.TAKE, ...limits, ...ids);
    return (reply as [Buffer, Buffer, number?, Buffer[]?, number?][]).map(takenFrom);
  }

  /** Renews the claim on pending entries, and sets their delivery counts. @returns the entries that another consumer took over. */
  renewClaims(counts: ReadonlyMap<string, number>): Promise<string[]> {
    return this.#setIdleAndCounts(0, counts);
  }

  /** Releases entries, so that any consumer can claim them at once. */
  async release(counts: ReadonlyMap<string, number>): Promise<void> {
    await this.#setIdleAndCounts(RELEASED_IDLE_MS, counts);
  }

  async acknowledge(ids: readonly string[]): Promise<void> {
    for (const some of chunks(ids)) await this.connection.call('XACK', [this.#options.key, GROUP, ...some]);
  }

  /** Moves an event to the dead letters, and acknowledges it. @returns how many older dead letters were evicted. */
  async moveToDeadLetters(id: string, deliveries: number, why: string, json: string): Promise<number> {
    const { maxDeadLetters } = this.#options;
    const args = [this.#deadKey, maxDeadLetters, id, deliveries, why, json];
    return Math.max(0, (await this.#run(scripts.MOVE_TO_DEAD_LETTERS, ...args)) as number);
  }

  /** Events that were trimmed unread are told once, to the dispatcher that asks first. */
  async measure(): Promise<Measured> {
    const state = await stateOfStream(this.connection, this.#options.key, true);
    return { ...state, deadLetters: (await this.connection.call('XLEN', [this.#deadKey])) as number };
  }

  /** Removes consumers that were idle for `idleMs` and have nothing pending. */
  async dropIdleConsumers(idleMs: number): Promise<void> {
    await this.#run(scripts.DROP_CONSUMERS, idleMs);
  }

  /** Removes this consumer, unless entries are pending for it. */
  async leave(): Promise<void> {
    await this.#run(scripts.DROP_CONSUMERS, -1);
  }

  /** Moves all current dead letters back to the stream. @returns how many. */
  async replayDead(): Promise<number> {
    const args = [this.#deadKey, '+', '-', 'COUNT', 1];
    const [newest] = (await this.connection.call('XREVRANGE', args)) as [Buffer, unknown][];
    if (!newest) return 0;
    for (let replayed = 0; ;) {
      const some = (await this.#run(scripts.REPLAY, this.#deadKey, newest[0], ENTRIES_PER_SCRIPT)) as number;
      replayed += some;
      if (some === 0) return replayed;
    }
  }

  /** Ends a blocking read. */
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

  async #setIdleAndCounts(idleMs: number, counts: ReadonlyMap<string, number>): Promise<string[]> {
    const lost: string[] = [];
    for (const some of chunks([...counts])) {
      const reply = (await this.#run(scripts.RENEW_CLAIMS, idleMs, ...some.flat())) as Buffer[];
      lost.push(...reply.map(String));
    }
    return lost;
  }
}

const RELEASED_IDLE_MS = 86_400_000; // A day: longer than a usual DISPATCHER_CLAIM_IDLE.

function* chunks<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += ENTRIES_PER_SCRIPT) yield all.slice(at, at + ENTRIES_PER_SCRIPT);
}

function takenFrom([id, what, deliveries = 0, fields = [], deadLettersLost = 0]: [
  Buffer,
  Buffer,
  number?,
  Buffer[]?,
  number?,
]): TakeResult {
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

export interface Entry {
  /** The ID of the stream entry. */
  id: string;
  /** Alternating names and values; null if the entry was trimmed before it was read. */
  fields: readonly string[] | null;
}

/** @returns null if the entry is not an event, and so cannot be delivered. */
export function deliveryOf(fields: readonly string[]): Delivery | null {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'event');
  const json = at === -1 ? undefined : fields[at + 1];
  if (json === undefined) return null;
  try {
    const event: unknown = JSON.parse(json);
    if (!isEvent(event)) return null;
    // Backends write an event as one line, and the JSON in the stream may contain line breaks.
    return { event, json: /[\r\n]/.test(json) ? JSON.stringify(event) : json };
  } catch {
    return null;
  }
}

/** Checks the fields that every backend needs. Backends check other fields themselves, or pass them on unread. */
function isEvent(value: unknown): value is EventJson {
  const { schema, id, kind, time } = (value ?? {}) as Partial<Record<string, unknown>>;
  return schema === 1 && [id, kind, time].every((it) => typeof it === 'string');
}
