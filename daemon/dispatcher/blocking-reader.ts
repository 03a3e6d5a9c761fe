import type { Redis } from 'ioredis';
import type { RedisAddress } from '../store/redis/address.js';
import { newClient } from '../store/redis/connection.js';
import type { Entry } from './entry.js';

const ANSWER_WITHIN_MS = 5_000; // Beyond the time it is to wait for entries.

export interface ReadFrom {
  key: string;
  group: string;
  consumer: string;
}

type Reply = [key: string, entries: [id: string, fields: string[] | null][]][] | null;

/** Reads what is new for a group, waiting for it, on a connection that is used for nothing else: whatever came behind would wait too. */
export class BlockingReader {
  readonly #address: RedisAddress;
  readonly #from: ReadFrom;
  #client: Redis | null = null;

  constructor(address: RedisAddress, from: ReadFrom) {
    this.#address = address;
    this.#from = from;
  }

  /**
   * @param blockMs how long to wait for the first entry; 0: not at all.
   * @throws what Redis or the network says; the connection is another one next time. What was read then is pending for this consumer.
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

  /** Ends a read that waits, with an error. */
  close(): void {
    this.#client?.disconnect();
    this.#client = null;
  }

  async #connect(): Promise<Redis> {
    const client = newClient(this.#address, { commandMs: LONGEST_BLOCK_MS + ANSWER_WITHIN_MS });
    client.on('error', () => undefined); // Whoever reads is told.
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.disconnect();
      throw error;
    }
  }
}

/** The most that a read may wait. */
export const LONGEST_BLOCK_MS = 1_000;
