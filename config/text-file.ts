/** Reads text files that people write with any editor. */
import { readFileSync } from 'node:fs';

/** A file that is not UTF-8 text. */
class NotUtf8 extends Error {
  override name = 'NotUtf8';
}

/** @throws if the file cannot be read, or is not UTF-8; `whyUnreadable` says why. A byte order mark at its beginning is dropped. */
export const readTextFile = (path: string): string => decodedText(readFileSync(path));

/** @throws {NotUtf8} */
export function decodedText(bytes: Uint8Array): string {
  try {
    // No text contains a NUL, but most of UTF-16 does.
    if (!bytes.includes(0)) return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Refused below.
  }
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  throw new NotUtf8(isUtf16 ? 'it is UTF-16; save it as UTF-8' : 'it is not UTF-8 text');
}

/** Why a file could not be read, as the end of a sentence. @param error of reading it. */
export const whyUnreadable = (error: unknown): string =>
  error instanceof NotUtf8 ? error.message : ((error as NodeJS.ErrnoException).code ?? 'failed');
