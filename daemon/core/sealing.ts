/** Encryption with AES-256-GCM: a random nonce, the ciphertext, the authentication tag. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * @param key 32 bytes.
 * @param place authenticated with the plaintext: it can only be decrypted for the same place.
 * @param plain pieces of the plaintext.
 * @returns pieces to join.
 */
export function sealed(key: Buffer, place: Buffer, plain: readonly Buffer[]): Buffer[] {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(place);
  const body = plain.map((piece) => cipher.update(piece));
  return [nonce, ...body, cipher.final(), cipher.getAuthTag()];
}

/** @returns the plaintext; null if it was not encrypted with this key for this place, or was modified. */
export function unsealed(key: Buffer, place: Buffer, bytes: Buffer): Buffer | null {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(place).setAuthTag(bytes.subarray(-TAG_BYTES));
  const plain = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    decipher.final(); // Of this cipher, it returns no more bytes.
    return plain;
  } catch {
    return null;
  }
}
