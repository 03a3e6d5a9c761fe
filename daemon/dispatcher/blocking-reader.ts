import type { Redis } from 'ioredis';
import type { RedisAddress } from '../store/redis/address.js';
import { newClient } from '../store/redis/connection.js';
import type { Entry } from './entry.js';

const RESPONSE_WITHIN_MS = 5_000; // In addition to the time that Redis waits for entries.

export interface ReadFrom {
  key: string;
  group: string;
  consumer: string;
}

type Reply = [key: string, entries: [id: string, fields: string[] | null][]][] | null;

/** Blocking reader of new entries of a consumer group. It has its own connection, because a blocking read delays all later commands. */
export class BlockingReader {
  readonly #address: RedisAddress;
  readonly #from: ReadFrom;
  #client: Redis | null = null;

  constructor(address: RedisAddress, from: ReadFrom) {
    this.#address = address;
    this.#from = from;
  }

  /**
   * @param blockMs how long to wait for the first entry; 0 to not wait.
   * @throws errors of Redis or the network, and then closes the connection. Redis may have made entries pending for this consumer.
   */
  async read(count: number, blockMs: number): Promise<Entry[]> {
    const { key, group, consumer } = this.#from;
    const client = (this.#client ??= await this.#connect());
    const block = blockMs > 0 ? ['BLOCK', Math.ceil(blockMs)] : [];
    try {
      const args = ['GROUP', group, consumer, 'COUNT', count, ...block, 'STREAMS', key, '>'];
      const reply = (await client.call('XREADGROUP', ...args)) as Reply;
      return (reply?.[0]?.[1] ?? []).map(([id, fields]) => ({ id, fields }));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Ends a blocking read with an error. */
  close(): void {
    this.#client?.disconnect();
    this.#client = null;
  }

  async #connect(): Promise<Redis> {
    const client = newClient(this.#address, { commandMs: MAX_BLOCK_MS + RESPONSE_WITHIN_MS });
    client.on('error', () => undefined); // `read` throws it.
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.disconnect();
      throw error;
    }
  }
}

/** The longest that a read may block. */
export const MAX_BLOCK_MS = 1_000;
