import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

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
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#encryptionKey, nonce).setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([nonce, cipher.update(JSON.stringify(value)), cipher.final(), cipher.getAuthTag()]);
    return sealed.toString('base64url');
  }

  /** @returns null unless the text was encrypted for this purpose under the same management token. */
  decrypt(purpose: string, text: string): unknown {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv('aes-256-gcm', this.#encryptionKey, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
      return JSON.parse(opened.toString()) as unknown;
    } catch {
      return null;
    }
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
