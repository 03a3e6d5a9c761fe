/** Parses HTTP/1.x messages strictly, and independently of Node's parser: two parsers see more than one. */

export interface Message {
  startLine: string;
  /** Names and values in their order. */
  fields: readonly (readonly [name: string, value: string])[];
  /** Decoded, as far as it has arrived. */
  body: Buffer;
  /** Whether the message states where it ends, and has reached that point. */
  isComplete: boolean;
  /** Whether only the end of the connection ends it. */
  endsWithConnection: boolean;
  /** The position of the next message; only if this one is complete. */
  end: number;
}

export class NotHttp extends Error {
  override name = 'NotHttp';
}

export const valuesOf = (message: Pick<Message, 'fields'>, name: string) =>
  message.fields.filter(([given]) => given.toLowerCase() === name.toLowerCase()).map(([, value]) => value);

/** A script's response may have trailers and any reason phrase; llmp's own has neither. */
export type Kind = 'request' | 'answer' | 'scripted answer';

const START_LINES: Record<Kind, RegExp> = {
  request: /^[A-Z-]+ [\x21-\x7e]+ HTTP\/1\.1$/,
  answer: /^HTTP\/1\.[01] \d{3} [\t\x20-\x7e\x80-\xff]*$/,
  'scripted answer': /^HTTP\/1\.[01] \d{3} [^]*$/,
};

/**
 * The message that begins at `start`, or undefined while its head is incomplete.
 * @param hasNoBody whether it cannot have a body whatever the head says (a response to HEAD, 204, 304).
 * @throws {NotHttp}
 */
export function readMessage(
  bytes: Buffer,
  start: number,
  kind: Kind,
  hasNoBody: (message: Pick<Message, 'startLine' | 'fields'>) => boolean,
): Message | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n', start);
  if (headEnd === -1) return undefined;
  const [startLine = '', ...lines] = bytes.subarray(start, headEnd).toString('latin1').split('\r\n');
  if (!START_LINES[kind].test(startLine)) throw new NotHttp(`not a start line: ${JSON.stringify(startLine)}`);
  const fields = lines.map((line): [string, string] => {
    const parts = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    // eslint-disable-next-line no-control-regex
    if (!parts || /[\x00-\x08\x0a-\x1f\x7f]/.test(line)) throw new NotHttp(`not a field: ${JSON.stringify(line)}`);
    return [parts[1] ?? '', parts[2] ?? ''];
  });
  return {
    startLine,
    fields,
    endsWithConnection: false,
    ...bodyOf(bytes, headEnd + 4, kind, { startLine, fields }, hasNoBody),
  };
}

function bodyOf(
  bytes: Buffer,
  start: number,
  kind: Kind,
  head: Pick<Message, 'startLine' | 'fields'>,
  hasNoBody: (message: Pick<Message, 'startLine' | 'fields'>) => boolean,
): Pick<Message, 'body' | 'isComplete' | 'end'> & Partial<Message> {
  const lengths = valuesOf(head, 'content-length');
  const codings = valuesOf(head, 'transfer-encoding');
  const empty = { body: Buffer.alloc(0), isComplete: true, end: start };
  if (lengths.length + codings.length > 1) throw new NotHttp('framed more than once');
  if (hasNoBody(head)) return empty;
  if (codings.length === 1) {
    if (codings[0]?.toLowerCase() !== 'chunked') throw new NotHttp(`transfer coding ${String(codings[0])}`);
    return chunked(bytes, start, kind === 'scripted answer');
  }
  if (lengths.length === 0) {
    if (kind === 'request') return empty;
    return { body: bytes.subarray(start), isComplete: false, end: bytes.length, endsWithConnection: true };
  }
  if (!/^\d+$/.test(lengths[0] ?? '')) throw new NotHttp(`length ${String(lengths[0])}`);
  const end = start + Number(lengths[0]);
  return { body: bytes.subarray(start, end), isComplete: bytes.length >= end, end };
}

function chunked(bytes: Buffer, start: number, mayHaveTrailers: boolean): Pick<Message, 'body' | 'isComplete' | 'end'> {
  const pieces: Buffer[] = [];
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const partial = () => ({ body: Buffer.concat(pieces), isComplete: false, end: bytes.length });
    if (lineEnd === -1) return partial();
    const line = bytes.subarray(at, lineEnd).toString('latin1');
    if (!/^[0-9A-Fa-f]+$/.test(line)) throw new NotHttp(`not a chunk size: ${JSON.stringify(line)}`);
    const size = parseInt(line, 16);
    if (size === 0) {
      if (bytes.length < lineEnd + 4) return partial();
      const end = bytes.indexOf('\r\n\r\n', lineEnd);
      if (end !== lineEnd && !mayHaveTrailers) throw new NotHttp('trailers');
      return end === -1 ? partial() : { body: Buffer.concat(pieces), isComplete: true, end: end + 4 };
    }
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (bytes.length < at) return partial();
    if (bytes.subarray(at - 2, at).toString('latin1') !== '\r\n') throw new NotHttp('a chunk without its end');
  }
}
