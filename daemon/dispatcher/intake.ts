/**
 * Brings events from the stream in hand, as long as there is room: first those that are pending for this consumer since an earlier
 * life, then those that another dispatcher took and did not answer for, then new ones.
 */
import type { Clock, Log } from '../core/ports.js';
import { RedisAway, RedisRefused } from '../store/redis/connection.js';
import { Backoff } from './backoff.js';
import { deliveryOf } from './entry.js';
import type { Held, InHand } from './in-hand.js';
import type { DispatcherMetrics } from './metrics.js';
import type { EventStream } from './stream.js';

const BLOCK_MS = 500;
const PAGE = 100;
const LONGEST_SWEEP_MS = 5_000;

export interface IntakeOptions {
  stream: EventStream;
  inHand: InHand;
  metrics: DispatcherMetrics;
  clock: Clock;
  log: Log;
  /** After how long another's events are taken over. */
  claimIdleMs: number;
  /** Ends when there is nothing more to read. */
  isOnce: boolean;
}

type Step = 'on' | 'nothing left';

export class Intake {
  readonly #options: IntakeOptions;
  readonly #backoff = new Backoff(100, 5_000);
  /** What keeps events from being read; null when nothing does. */
  #trouble: 'redis' | 'stream' | null = 'redis';
  #isStopping = false;
  #hasEnded = false;
  #hadGroup = false;
  #needsGroup = true;
  /** Behind which own pending entries are looked for; null when all were found. */
  #ownAfter: string | null = '-';
  #alone: string[] = [];
  #cursor = '0-0';
  #sweepAtMs = 0;
  #isSweptOnce = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** There was nothing more to read. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get trouble(): 'redis' | 'stream' | null {
    return this.#options.stream.connection.isUp ? this.#trouble : 'redis';
  }

  /** Reads until it is stopped, or there is nothing more. */
  async run(): Promise<void> {
    const { inHand } = this.#options;
    while (!this.#isStopping) {
      try {
        const step = await this.#step();
        this.#trouble = null;
        this.#backoff.reset();
        this.#hasEnded = step === 'nothing left';
        if (this.#hasEnded) return;
      } catch (error) {
        this.#judge(error);
        await inHand.changed.wait(this.#backoff.next());
      }
    }
  }

  stop(): void {
    this.#isStopping = true;
    this.#options.stream.stopReading();
    this.#options.inHand.changed.wake();
  }

  async #step(): Promise<Step> {
    const { stream, inHand, clock, isOnce } = this.#options;
    if (this.#needsGroup) await this.#makeGroup();
    const { room } = inHand;
    if (room === 0) {
      await inHand.changed.wait(BLOCK_MS);
      return 'on';
    }
    const [nextAlone] = this.#alone;
    if (nextAlone !== undefined) {
      await this.#takeAlone(nextAlone);
      this.#alone.shift();
      return 'on';
    }
    if (this.#ownAfter !== null) {
      await this.#takeOwn(this.#ownAfter, Math.min(room, PAGE));
      return 'on';
    }
    if (clock.monotonic() >= this.#sweepAtMs) {
      await this.#claim(Math.min(room, PAGE));
      return 'on';
    }
    const entries = await stream.readNew(room, isOnce ? 0 : BLOCK_MS);
    for (const { id, fields } of entries) if (fields) await this.#admit(id, fields, 1, 'together');
    inHand.changed.wake();
    return isOnce && entries.length === 0 && this.#isSweptOnce ? 'nothing left' : 'on';
  }

  async #makeGroup(): Promise<void> {
    const { stream, log, metrics } = this.#options;
    const isNew = await stream.createGroup();
    if (isNew && this.#hadGroup) {
      metrics.groupRecreated();
      log.error(
        'the consumer group was gone, and with it what was known of deliveries: all that is in the stream is delivered anew',
      );
    } else if (isNew) log.info('made the consumer group');
    this.#needsGroup = false;
    this.#hadGroup = true;
  }

  async #takeOwn(after: string, count: number): Promise<void> {
    const { stream, inHand } = this.#options;
    const ids = await stream.listOwn(after, count);
    const unknown = ids.filter((id) => !inHand.has(id));
    if (unknown.length > 0) await this.#take(unknown);
    const last = ids.at(-1);
    this.#ownAfter = last !== undefined && ids.length === count ? `(${last}` : null;
  }

  async #claim(count: number): Promise<void> {
    const { stream, inHand, clock, claimIdleMs, metrics } = this.#options;
    const { next, ids, trimmed } = await stream.claim(claimIdleMs, this.#cursor, count);
    metrics.trimmedPending(trimmed);
    this.#cursor = next;
    const unknown = ids.filter((id) => !inHand.has(id));
    if (unknown.length > 0) await this.#take(unknown);
    if (next !== '0-0') return;
    this.#isSweptOnce = true;
    this.#sweepAtMs = clock.monotonic() + Math.min(claimIdleMs / 4, LONGEST_SWEEP_MS);
  }

  async #take(ids: readonly string[]): Promise<void> {
    const { stream, inHand } = this.#options;
    for (const it of await stream.take(ids, 'together')) {
      if (it.kind === 'taken') await this.#admit(it.id, it.fields, it.deliveries, 'together');
      else if (it.kind === 'alone') this.#alone.push(it.id);
      else this.#gone(it);
    }
    inHand.changed.wake();
  }

  /** Others wait until it was tried, so that if it is the end of this process none of them was in its hand. */
  async #takeAlone(id: string): Promise<void> {
    const { stream, inHand } = this.#options;
    const [it] = await stream.take([id], 'alone');
    if (it?.kind !== 'taken') {
      if (it) this.#gone(it);
      return;
    }
    const held = await this.#admit(it.id, it.fields, it.deliveries, 'alone');
    while (held && inHand.find(id) === held && isUntried(held) && !this.#isStopping)
      await inHand.changed.wait(BLOCK_MS);
  }

  #gone(it: Parameters<DispatcherMetrics['gone']>[0]): void {
    const { metrics, log } = this.#options;
    metrics.gone(it);
    if (it.kind === 'dead')
      log.error('an event was set aside: no dispatcher that took it answered for it', { entry: it.id });
    if (it.kind === 'trimmed')
      log.warn('an event was trimmed from the stream before it was delivered', { entry: it.id });
  }

  async #admit(
    id: string,
    fields: readonly string[],
    deliveries: number,
    how: 'together' | 'alone',
  ): Promise<Held | null> {
    const { stream, inHand, metrics, log } = this.#options;
    const delivery = deliveryOf(fields);
    if (delivery) return inHand.add(id, delivery, deliveries, how);
    metrics.setAside(await stream.setAside(id, deliveries, 'not an event', ''));
    log.error('an entry of the stream that is not an event was set aside', { entry: id });
    return null;
  }

  /** What went wrong with reading, and what is to be done before the next try. */
  #judge(error: unknown): void {
    if (this.#isStopping) return; // Stopping ends a read that waits.
    const { log } = this.#options;
    // What was read just now may be pending for us without our knowing.
    this.#ownAfter = '-';
    this.#alone = [];
    const code = codeOf(error);
    if (code === 'NOGROUP' || code === 'UNBLOCKED') {
      this.#needsGroup = true;
      return;
    }
    const trouble = code === 'WRONGTYPE' ? 'stream' : 'redis';
    if (trouble === 'stream' && this.#trouble !== 'stream') {
      log.error('REDIS_STREAM_KEY holds something that is no stream: no event can be read');
    } else if (!(error instanceof RedisAway) && !(error instanceof RedisRefused) && this.#trouble === null) {
      log.warn('reading the stream failed', { reason: code ?? 'the connection ended' });
    }
    this.#trouble = trouble;
  }
}

/** The word that an error of Redis begins with. */
function codeOf(error: unknown): string | null {
  if (error instanceof RedisRefused) return error.code;
  const { name, message } = error as Error;
  return name === 'ReplyError' ? (message.split(' ', 1)[0] ?? null) : null;
}

const isUntried = (held: Held): boolean => held.triedAtMs === null || held.isInFlight;
