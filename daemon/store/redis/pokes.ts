/**
 * Words between instances, by PUBLISH. Whoever missed one finds out from the database within a second.
 *
 * Redis may be open to others, and a word can end requests or hide a revocation: so each is signed with a key that only instances of
 * one installation have. So is the channel named, for channels are not kept apart by databases.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock, Log, Poke, Pokes } from '../../core/ports.js';
import type { RedisAddress } from './address.js';
import { RedisConnection } from './connection.js';

const COMMAND_MS = 500;
// A connection on which nothing comes may have been dead for long.
const PING_EVERY_MS = 2_000;
const MAC_BYTES = 16;

export interface RedisPokesOptions {
  address: RedisAddress;
  /** On which words are sent. */
  sender: Pick<RedisConnection, 'call'>;
  /** 32 bytes. */
  key: Buffer;
  instanceId: string;
  clock: Clock;
  log: Log;
}

export class RedisPokes implements Pokes {
  readonly #options: RedisPokesOptions;
  readonly #receiver: RedisConnection;
  readonly #channel: string;
  readonly #listeners: ((poke: Poke) => void)[] = [];
  #cancelPing: (() => void) | null = null;
  #isClosed = false;

  constructor(options: RedisPokesOptions) {
    this.#options = options;
    const { address, clock, log, key } = options;
    this.#channel = `llmp:pokes:${createHmac('sha256', key).update('channel').digest('hex').slice(0, 16)}`;
    this.#receiver = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS, purpose: 'pokes' });
    this.#receiver.onArrival(async ({ subscribe }) => {
      await subscribe(this.#channel, (message) => {
        this.#receive(message);
      });
      this.#tell({ kind: 'arrived' });
    });
  }

  /** Resolves, in half a second or so, when the first try is over, good or not. */
  async open(): Promise<void> {
    this.#pingLater();
    await this.#receiver.open();
  }

  send(poke: Poke): void {
    const text = JSON.stringify({ from: this.#options.instanceId, poke });
    const message = Buffer.concat([this.#macOf(text), Buffer.from(text)]);
    this.#options.sender.call('PUBLISH', [this.#channel, message]).catch(() => undefined);
  }

  onPoke(listener: (poke: Poke) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelPing?.();
    this.#receiver.close();
  }

  #receive(message: Buffer): void {
    const [mac, text] = [message.subarray(0, MAC_BYTES), message.subarray(MAC_BYTES).toString()];
    if (mac.length < MAC_BYTES || !timingSafeEqual(mac, this.#macOf(text))) return;
    const { from, poke } = JSON.parse(text) as { from: string; poke: Poke };
    if (from !== this.#options.instanceId) this.#tell(poke);
  }

  #tell(poke: Poke): void {
    for (const listener of this.#listeners) listener(poke);
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#options.key).update(text).digest().subarray(0, MAC_BYTES);
  }

  #pingLater(): void {
    if (this.#isClosed) return;
    this.#cancelPing = this.#options.clock.after(PING_EVERY_MS, () => {
      // What comes of it is for the breaker.
      this.#receiver.ping().catch(() => undefined);
      this.#pingLater();
    });
  }
}
