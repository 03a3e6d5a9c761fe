/**
 * Encryption of secrets at rest with AES-256-GCM. Each ciphertext is bound to its place (as additional data), so that a row copied
 * to another project cannot be decrypted. It names the key that it was encrypted with, so that keys can be rotated.
 */
import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { neverRecordKey } from '../core/masking.js';
import { sealed, unsealed } from '../core/sealing.js';
import { shareOwner } from './owner.js';

const KEY_BYTES = 32;

export interface Sealed {
  /** Nonce, ciphertext and tag, in base64. */
  text: string;
  keyId: string;
}

/** Decryption failed: wrong key, wrong place, or modified ciphertext. */
export class DecryptionFailed extends Error {
  override name = 'DecryptionFailed';
}

/** Whatever it encrypts or decrypts is a key of a provider, which must not be recorded, wherever a client repeats it. */
export class SecretBox {
  readonly #key: Buffer;
  /** All keys that can decrypt, by ID. */
  readonly #keys: ReadonlyMap<string, Buffer>;
  /** ID of the key used for encryption. */
  readonly keyId: string;

  /** @param previous the previous key, used only for decryption. */
  constructor(key: Buffer, previous?: Buffer) {
    const keys = previous ? [previous, key] : [key];
    if (keys.some(({ length }) => length !== KEY_BYTES)) {
      throw new RangeError(`an encryption key must have ${KEY_BYTES} bytes`);
    }
    this.#key = key;
    this.#keys = new Map(keys.map((each) => [idOf(each), each]));
    this.keyId = idOf(key);
  }

  /** IDs of all keys that can decrypt. */
  get keyIds(): string[] {
    return [...this.#keys.keys()];
  }

  /** Derives a 32-byte key for another purpose. It reveals nothing about the encryption key. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', `llmp ${purpose}`, KEY_BYTES));
  }

  /** @param place where the secret is stored, for example `project:<id>:api_key`. */
  seal(secret: string, place: string): Sealed {
    neverRecordKey(secret);
    const bytes = Buffer.concat(sealed(this.#key, Buffer.from(place), [Buffer.from(secret)]));
    return { text: bytes.toString('base64'), keyId: this.keyId };
  }

  /** @throws {DecryptionFailed} */
  open({ text, keyId }: Sealed, place: string): string {
    const key = this.#keys.get(keyId);
    if (!key) throw new DecryptionFailed(`encrypted with another key (${keyId})`);
    const secret = unsealed(key, Buffer.from(place), Buffer.from(text, 'base64'))?.toString();
    if (secret === undefined) throw new DecryptionFailed('not encrypted for this place, or modified');
    neverRecordKey(secret);
    return secret;
  }
}

/** Identifies a key without revealing anything about it. */
const idOf = (key: Buffer): string =>
  createHash('sha256').update('llmp key id\0').update(key).digest('hex').slice(0, 16);

/** The key file is missing or does not contain a valid key. */
export class InvalidKeyFile extends Error {
  override name = 'InvalidKeyFile';
}

/** Reads the key file. @throws {InvalidKeyFile} */
export function readEncryptionKeyFile(path: string): Buffer {
  const key = Buffer.from(readFileSync(path, 'utf8').trim(), 'base64');
  if (key.length !== KEY_BYTES) throw new InvalidKeyFile(`${path} does not contain ${KEY_BYTES} bytes in base64`);
  return key;
}

/**
 * Reads the key file, or creates it with mode 0600 if it does not exist and no key can have been in use.
 *
 * @param mayCreate false if the database exists already: a new key could not decrypt what it contains.
 * @throws {InvalidKeyFile}
 */
export function readOrCreateKeyFile(path: string, mayCreate: boolean): Buffer {
  if (existsSync(path)) {
    const key = readEncryptionKeyFile(path);
    chmodSync(path, 0o600);
    return key;
  }
  if (!mayCreate) {
    throw new InvalidKeyFile(
      `${path} is missing, and the upstream keys in the database are encrypted with it: restore the file or set ENCRYPTION_KEY`,
    );
  }
  const key = randomBytes(KEY_BYTES);
  writeKeyFile(path, key);
  return key;
}

/** Creates a key file with mode 0600. */
export function writeKeyFile(path: string, key: Buffer): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, 'wx', 0o600);
  try {
    shareOwner(path, dirname(path));
    writeSync(file, `${key.toString('base64')}\n`);
    fsyncSync(file); // The key must be on disk before it is used.
  } finally {
    closeSync(file);
  }
}
