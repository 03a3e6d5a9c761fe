/** Percent-decoding for the search for tokens: the upstream may decode a text, perhaps more than once. */

// Text is not encoded more often than this in practice.
const MAX_DECODINGS = 3;

/** The text itself, and the results of percent-decoding it once, twice and three times. Each character represents one byte (latin1). */
export function percentDecodedForms(text: string): string[] {
  const forms = [text];
  for (let last = text; last.includes('%') && forms.length <= MAX_DECODINGS; forms.push(last)) {
    const decoded = percentDecoded(last);
    if (decoded.length === last.length) break;
    last = decoded;
  }
  return forms;
}

/** Leaves everything unchanged that is not `%` with two hexadecimal digits. */
function percentDecoded(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  let length = 0;
  for (let at = 0; at < bytes.length; at++, length++) {
    const byte = bytes[at] === PERCENT ? hexByte(bytes[at + 1], bytes[at + 2]) : -1;
    if (byte !== -1) at += 2;
    bytes[length] = byte === -1 ? (bytes[at] ?? 0) : byte;
  }
  return bytes.toString('latin1', 0, length);
}

const PERCENT = 0x25;

/** @returns -1 if they are not two hexadecimal digits. */
function hexByte(high = 0, low = 0): number {
  const sixteens = hexDigit(high);
  const ones = hexDigit(low);
  return sixteens === -1 || ones === -1 ? -1 : sixteens * 16 + ones;
}

function hexDigit(character: number): number {
  if (character >= 0x30 && character <= 0x39) return character - 0x30;
  const letter = character | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}
