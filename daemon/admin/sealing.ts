import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Keys out of the management token: they are the same on every instance without being stored or told to anybody, and others once the
 * token is another, which ends all sessions.
 */
export class Sealing {
  readonly #sealKey: Buffer;
  readonly #markKey: Buffer;

  constructor(managementToken: string) {
    const derived = (purpose: string) =>
      Buffer.from(hkdfSync('sha256', managementToken, '', `llmp admin ${purpose}`, KEY_BYTES));
    this.#sealKey = derived('seal');
    this.#markKey = derived('mark');
  }

  /** @param purpose what it is sealed for: it can be opened for nothing else. @returns base64url. */
  seal(purpose: string, value: unknown): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#sealKey, nonce).setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([nonce, cipher.update(JSON.stringify(value)), cipher.final(), cipher.getAuthTag()]);
    return sealed.toString('base64url');
  }

  /** @returns null for anything that was not sealed for this purpose under the same management token. */
  open(purpose: string, text: string): unknown {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv('aes-256-gcm', this.#sealKey, bytes.subarray(0, NONCE_BYTES), {
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

  /** What only we can say of `subject`. */
  mark(subject: string): string {
    return createHmac('sha256', this.#markKey).update(subject).digest('base64url');
  }

  isMarkOf(subject: string, presented: string): boolean {
    const expected = Buffer.from(this.mark(subject));
    const given = Buffer.from(presented);
    // Every mark is as long as any other, so its length tells nothing.
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}
