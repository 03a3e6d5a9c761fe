/**
 * What the cache writes to Redis: names that tell nothing, and answers that nobody else can read or make.
 *
 * One keyed hash of a place gives the name of its entry and a key of its own (AES-256-GCM), so that an entry opens at its place
 * only: what was copied there from elsewhere, is cut short, of another kind or by anybody else does not. A key for each place
 * also keeps the number of random nonces under one key far from where two could be the same.
 *
 * An entry: twelve digits, how many ms before its end it becomes stale (for the look-up script); a byte for the layout;
 * nonce, ciphertext, tag. Inside: the length of a JSON text, that text, the body.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { CachePlace, Kept, KeptAnswer, KeptVary } from '../../core/ports.js';

const LAYOUT = 1;
export const STALE_DIGITS = 12;
const HEAD_BYTES = STALE_DIGITS + 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const NAME_BYTES = 16;
const LONGEST_MS = 10 ** STALE_DIGITS - 1; // 31 years.

/** A place, as Redis knows it. */
export interface NamedPlace {
  /** `RESOURCE:PROJECT`: all members of the index that begin so are answers of this resource in this project. */
  resource: string;
  /** `RESOURCE:PROJECT:NAME`, with the name of the entry. */
  member: string;
  key: Buffer;
}

export type Opened = Pick<Kept, 'freshMs' | 'keepMs' | 'content'>;

export class EntrySeal {
  readonly #key: Buffer;
  /** Two hashes are a good part of what a hit costs, and most hits are of few places. */
  readonly #named = new LRUCache<string, NamedPlace>({ max: 1_000 });

  /** @param key 32 bytes that serve nothing else. */
  constructor(key: Buffer) {
    this.#key = key;
  }

  place({ projectId, resource, variant }: CachePlace): NamedPlace {
    const text = `${projectId}\n${resource}\n${variant}`;
    const known = this.#named.get(text);
    if (known) return known;
    const hash = this.#hash(`entry\n${text}`);
    const name = hash.subarray(KEY_BYTES, KEY_BYTES + NAME_BYTES).toString('base64url');
    const named = this.resourceOf(projectId, resource);
    const place = { resource: named, member: `${named}:${name}`, key: hash.subarray(0, KEY_BYTES) };
    this.#named.set(text, place);
    return place;
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

  seal({ key }: NamedPlace, { content, freshMs, keepMs }: Kept): { payload: Buffer; keepMs: number } {
    const keptMs = wholeMs(keepMs);
    const { body, ...rest } = content.kind === 'answer' ? content : { ...content, body: Buffer.alloc(0) };
    const said = Buffer.from(JSON.stringify({ ...rest, freshMs, keepMs: keptMs }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(said.length);
    const head = Buffer.alloc(HEAD_BYTES, LAYOUT);
    head.write(String(Math.max(0, keptMs - wholeMs(freshMs))).padStart(STALE_DIGITS, '0'), 'latin1');
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(head);
    const sealed = [cipher.update(length), cipher.update(said), cipher.update(body), cipher.final()];
    return { payload: Buffer.concat([head, nonce, ...sealed, cipher.getAuthTag()]), keepMs: keptMs };
  }

  /** @returns null for what was not sealed for this place. */
  open({ key }: NamedPlace, payload: Buffer): Opened | null {
    const head = payload.subarray(0, HEAD_BYTES);
    if (head[STALE_DIGITS] !== LAYOUT || payload.length < HEAD_BYTES + NONCE_BYTES + TAG_BYTES) return null;
    const begin = HEAD_BYTES + NONCE_BYTES;
    const opener = createDecipheriv('aes-256-gcm', key, payload.subarray(HEAD_BYTES, begin), {
      authTagLength: TAG_BYTES,
    });
    opener.setAAD(head).setAuthTag(payload.subarray(-TAG_BYTES));
    const plain = opener.update(payload.subarray(begin, -TAG_BYTES));
    try {
      opener.final();
    } catch {
      return null;
    }
    return read(plain);
  }

  #hash(text: string): Buffer {
    return createHmac('sha512', this.#key).update(text).digest();
  }

  #name(text: string): string {
    return this.#hash(text).subarray(0, NAME_BYTES).toString('base64url');
  }
}

/** What we wrote ourselves: its tag was right. */
function read(plain: Buffer): Opened {
  const end = 4 + plain.readUInt32BE(0);
  const said = JSON.parse(plain.toString('utf8', 4, end)) as (Omit<KeptAnswer, 'body'> | KeptVary) &
    Pick<Kept, 'freshMs' | 'keepMs'>;
  const { freshMs, keepMs, ...content } = said;
  return { freshMs, keepMs, content: content.kind === 'vary' ? content : { ...content, body: plain.subarray(end) } };
}

const wholeMs = (ms: number): number => Math.min(Math.max(1, Math.ceil(ms)), LONGEST_MS);
