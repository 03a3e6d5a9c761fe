/** What a text says once it is percent-decoded: a server behind this one may decode it, perhaps more than once. */

// Nobody encodes a text more often than this.
const MOST_DECODINGS = 3;

/** The text itself, and what it says once it is percent-decoded one, two and three times. One character stands for each byte. */
export function percentDecodedForms(text: string): string[] {
  const forms = [text];
  for (let last = text; last.includes('%') && forms.length <= MOST_DECODINGS; forms.push(last)) {
    const decoded = percentDecoded(last);
    if (decoded.length === last.length) break;
    last = decoded;
  }
  return forms;
}

/** What is no `%` with two hexadecimal digits stays as it is. */
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

/** @returns -1 when the two are not the digits of a byte. */
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
