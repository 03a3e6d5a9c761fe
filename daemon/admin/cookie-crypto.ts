import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { sealed, unsealed } from '../core/sealing.js';

const KEY_BYTES = 32;

/**
 * Encryption and signatures for cookies and forms, with keys derived from the management token. So the keys are the same on every
 * instance without being stored or exchanged, and a new management token ends all sessions.
 */
export class CookieCrypto {
  readonly #encryptionKey: Buffer;
  readonly #signingKey: Buffer;

  constructor(managementToken: string) {
    const derived = (purpose: string) =>
      Buffer.from(hkdfSync('sha256', managementToken, '', `llmp admin ${purpose}`, KEY_BYTES));
    this.#encryptionKey = derived('seal');
    this.#signingKey = derived('mark');
  }

  /** @param purpose authenticated with the value: it can only be decrypted for the same purpose. @returns base64url. */
  encrypt(purpose: string, value: unknown): string {
    const pieces = sealed(this.#encryptionKey, Buffer.from(purpose), [Buffer.from(JSON.stringify(value))]);
    return Buffer.concat(pieces).toString('base64url');
  }

  /** @returns null unless the text was encrypted for this purpose under the same management token. */
  decrypt(purpose: string, text: string): unknown {
    const plain = unsealed(this.#encryptionKey, Buffer.from(purpose), Buffer.from(text, 'base64url'));
    return plain && (JSON.parse(plain.toString()) as unknown);
  }

  /** HMAC of `subject`. */
  sign(subject: string): string {
    return createHmac('sha256', this.#signingKey).update(subject).digest('base64url');
  }

  verify(subject: string, presented: string): boolean {
    const expected = Buffer.from(this.sign(subject));
    const given = Buffer.from(presented);
    // All signatures have the same length, so comparing lengths reveals nothing.
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
