/**
 * Change notifications between instances, through Redis PUBLISH. An instance that misses one reads the change from the database
 * within a second.
 *
 * Other programs may have access to Redis, and a notification can end requests or hide a revocation. So each one is signed with a
 * key that only the instances of one installation share. The channel name is derived from that key too, because Redis channels are
 * not separated by database number.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock, Log, Notification, Notifications } from '../../core/ports.js';
import { every } from '../../core/timing.js';
import type { RedisAddress } from './address.js';
import { RedisConnection } from './connection.js';

const COMMAND_MS = 500;
// A silent connection may have been dead for a long time.
const PING_EVERY_MS = 2_000;
const MAC_BYTES = 16;

export interface RedisNotificationsOptions {
  address: RedisAddress;
  /** The connection that publishes. */
  sender: Pick<RedisConnection, 'call'>;
  /** Signing key, 32 bytes. */
  key: Buffer;
  instanceId: string;
  clock: Clock;
  log: Log;
}

export class RedisNotifications implements Notifications {
  readonly #options: RedisNotificationsOptions;
  readonly #receiver: RedisConnection;
  readonly #channel: string;
  readonly #listeners: ((notification: Notification) => void)[] = [];
  #stopPinging: (() => void) | null = null;

  constructor(options: RedisNotificationsOptions) {
    this.#options = options;
    const { address, clock, log, key } = options;
    this.#channel = `llmp:notifications:${createHmac('sha256', key).update('channel').digest('hex').slice(0, 16)}`;
    this.#receiver = new RedisConnection({ address, clock, log, commandMs: COMMAND_MS, purpose: 'notifications' });
    this.#receiver.onConnect(async ({ subscribe }) => {
      await subscribe(this.#channel, (message) => {
        this.#receive(message);
      });
      this.#notify({ kind: 'arrived' });
    });
  }

  /** Resolves after the first connection attempt, within about half a second, whether it succeeded or not. */
  async open(): Promise<void> {
    // The circuit breaker handles a failure.
    this.#stopPinging = every(this.#options.clock, PING_EVERY_MS, () => this.#receiver.ping());
    await this.#receiver.open();
  }

  send(notification: Notification): void {
    const text = JSON.stringify({ from: this.#options.instanceId, notification });
    const message = Buffer.concat([this.#macOf(text), Buffer.from(text)]);
    this.#options.sender.call('PUBLISH', [this.#channel, message]).catch(() => undefined);
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#stopPinging?.();
    this.#receiver.close();
  }

  #receive(message: Buffer): void {
    const [mac, text] = [message.subarray(0, MAC_BYTES), message.subarray(MAC_BYTES).toString()];
    if (mac.length < MAC_BYTES || !timingSafeEqual(mac, this.#macOf(text))) return;
    const { from, notification } = JSON.parse(text) as { from: string; notification: Notification };
    if (from !== this.#options.instanceId) this.#notify(notification);
  }

  #notify(notification: Notification): void {
    for (const listener of this.#listeners) listener(notification);
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#options.key).update(text).digest().subarray(0, MAC_BYTES);
  }
}
