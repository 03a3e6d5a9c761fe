/**
 * Secrets at rest: AES-256-GCM. What is sealed is bound to its place (the additional data), so that a row
 * copied to another project does not open, and names the key it was sealed with, so that keys can be changed.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

export interface Sealed {
  /** nonce, ciphertext and tag in base64. */
  text: string;
  keyId: string;
}

/** What was sealed cannot be opened: another key, another place, or tampered with. */
export class CannotOpen extends Error {
  override name = 'CannotOpen';
}

export class SecretBox {
  readonly #key: Buffer;
  /** By their ids: all that it can open with. */
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** Of the key that it seals with. */
  readonly keyId: string;

  /** @param previous what was sealed with it can still be opened. */
  constructor(key: Buffer, previous?: Buffer) {
    const keys = previous ? [previous, key] : [key];
    if (keys.some(({ length }) => length !== KEY_BYTES)) {
      throw new RangeError(`an encryption key has ${KEY_BYTES} bytes`);
    }
    this.#key = key;
    this.#keys = new Map(keys.map((each) => [idOf(each), each]));
    this.keyId = idOf(key);
  }

  /** Of all keys that it can open with. */
  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  /** A key of 32 bytes for another purpose, which tells nothing about this one. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', `llmp ${purpose}`, KEY_BYTES));
  }

  /** @param place where the secret stands, such as `project:<id>:api_key`. */
  seal(secret: string, place: string): Sealed {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(place));
    const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return { text: Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64'), keyId: this.keyId };
  }

  /** @throws {CannotOpen} */
  open(sealed: Sealed, place: string): string {
    const key = this.#keys.get(sealed.keyId);
    if (!key) throw new CannotOpen(`sealed with another key (${sealed.keyId})`);
    const bytes = Buffer.from(sealed.text, 'base64');
    try {
      const opener = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      opener.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-TAG_BYTES));
      return opener.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + opener.final('utf8');
    } catch (error) {
      throw new CannotOpen('not sealed here, or tampered with', { cause: error });
    }
  }
}

/** Tells keys apart without telling anything about them. */
const idOf = (key: Buffer): string =>
  createHash('sha256').update('llmp key id\0').update(key).digest('hex').slice(0, 16);

/** The key file cannot serve as one. */
export class BadKeyFile extends Error {
  override name = 'BadKeyFile';
}

/** Reads the key file. @throws {BadKeyFile} when that is not what it is. */
export function keyIn(path: string): Buffer {
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64');
  if (key.length !== KEY_BYTES) throw new BadKeyFile(`${path} does not hold ${KEY_BYTES} bytes in base64`);
  return key;
}

/**
 * Reads the key file, or makes one of mode 0600 when there is none and none can have been in use.
 *
 * @param mayCreate false when a database exists already: a new key could not open what it holds.
 * @throws {BadKeyFile}
 */
export function keyFromFile(path: string, mayCreate: boolean): Buffer {
  if (existsSync(path)) {
    const key = keyIn(path);
    chmodSync(path, 0o600);
    return key;
  }
  if (!mayCreate) {
    throw new BadKeyFile(
      `${path} is missing, and the database beside it was sealed with it; restore it or set ENCRYPTION_KEY`,
    );
  }
  const key = randomBytes(KEY_BYTES);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, `${key.toString('base64')}\n`);
    fsyncSync(file); // Before anything is sealed with it.
  } finally {
    closeSync(file);
  }
  return key;
}
