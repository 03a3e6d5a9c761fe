/**
 * Encryption of cache entries in Redis: key names that reveal nothing, and responses that only this installation can read or
 * create.
 *
 * One keyed hash of a cache key yields the name of its entry and a separate encryption key (AES-256-GCM), so that an entry can be
 * decrypted only under its own cache key. Entries that were copied from another key, truncated, of another format, or written by
 * another program fail. Separate keys also keep the number of random nonces under one key far below the point where two could
 * collide.
 *
 * Format of an entry: twelve digits, the time in ms before expiry at which it becomes stale (for the look-up script); one byte for
 * the format version; nonce, ciphertext, tag. Plaintext: the length of a JSON text, the JSON text, the body.
 */
import { createHmac } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { sealed, unsealed } from '../../core/sealing.js';
import type { CacheKey, CacheEntry, StoredResponse, VaryMarker } from '../../core/ports.js';

const LAYOUT = 1;
export const STALE_DIGITS = 12;
const HEAD_BYTES = STALE_DIGITS + 1;
const KEY_BYTES = 32;
const NAME_BYTES = 16;
const MAX_MS = 10 ** STALE_DIGITS - 1; // 31 years.

/** A cache key as it appears in Redis. */
export interface HashedKey {
  /** `RESOURCE:PROJECT`: prefix of all index members of this resource in this project. */
  resource: string;
  /** `RESOURCE:PROJECT:NAME`, where NAME is the name of the entry. */
  member: string;
  key: Buffer;
}

export class EntryCipher {
  readonly #key: Buffer;
  /** Cached, because two hashes are much of the cost of a cache hit, and most hits are for few keys. */
  readonly #hashedKeys = new LRUCache<string, HashedKey>({ max: 1_000 });

  /** @param key 32 bytes, used for nothing else. */
  constructor(key: Buffer) {
    this.#key = key;
  }

  hashedKeyOf({ projectId, resource, variant }: CacheKey): HashedKey {
    const text = `${projectId}\n${resource}\n${variant}`;
    const known = this.#hashedKeys.get(text);
    if (known) return known;
    const hash = this.#hash(`entry\n${text}`);
    const name = hash.subarray(KEY_BYTES, KEY_BYTES + NAME_BYTES).toString('base64url');
    const prefix = this.resourceOf(projectId, resource);
    const hashedKey = { resource: prefix, member: `${prefix}:${name}`, key: hash.subarray(0, KEY_BYTES) };
    this.#hashedKeys.set(text, hashedKey);
    return hashedKey;
  }

  resourceOf(projectId: string, resource: string): string {
    return `${this.resource(resource)}:${this.project(projectId)}`;
  }

  resource(resource: string): string {
    return this.#name(`resource\n${resource}`);
  }

  project(projectId: string): string {
    return /^[\w-]{1,64}$/.test(projectId) ? projectId : this.#name(`project\n${projectId}`);
  }

  seal({ key }: HashedKey, { content, freshMs, keepMs }: CacheEntry): { payload: Buffer; keepMs: number } {
    const storedMs = wholeMs(keepMs);
    const { body, ...rest } = content.kind === 'answer' ? content : { ...content, body: Buffer.alloc(0) };
    const json = Buffer.from(JSON.stringify({ ...rest, freshMs, keepMs: storedMs }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(json.length);
    const head = Buffer.alloc(HEAD_BYTES, LAYOUT);
    head.write(String(Math.max(0, storedMs - wholeMs(freshMs))).padStart(STALE_DIGITS, '0'), 'latin1');
    return { payload: Buffer.concat([head, ...sealed(key, head, [length, json, body])]), keepMs: storedMs };
  }

  /** @returns null if the payload was not encrypted for this cache key. */
  open({ key }: HashedKey, payload: Buffer): CacheEntry | null {
    const head = payload.subarray(0, HEAD_BYTES);
    if (head[STALE_DIGITS] !== LAYOUT) return null;
    const plain = unsealed(key, head, payload.subarray(HEAD_BYTES));
    return plain && read(plain);
  }

  #hash(text: string): Buffer {
    return createHmac('sha512', this.#key).update(text).digest();
  }

  #name(text: string): string {
    return this.#hash(text).subarray(0, NAME_BYTES).toString('base64url');
  }
}

/** Parses plaintext that this installation wrote: its authentication tag was valid. */
function read(plain: Buffer): CacheEntry {
  const end = 4 + plain.readUInt32BE(0);
  const json = JSON.parse(plain.toString('utf8', 4, end)) as (Omit<StoredResponse, 'body'> | VaryMarker) &
    Pick<CacheEntry, 'freshMs' | 'keepMs'>;
  const { freshMs, keepMs, ...content } = json;
  return { freshMs, keepMs, content: content.kind === 'vary' ? content : { ...content, body: plain.subarray(end) } };
}

const wholeMs = (ms: number): number => Math.min(Math.max(1, Math.ceil(ms)), MAX_MS);
