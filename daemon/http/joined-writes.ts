import type { Socket } from 'node:net';

// Above this size, copying the chunks costs more than it saves; Node then also has to allocate memory for the text.
const MAX_TEXT_BYTES = 16 * 1024;

interface Chunk {
  chunk: Buffer | string;
  encoding: string;
}
type Callback = (error?: Error | null) => void;

/** The methods of a stream that `Writable` calls: for chunks that were written while it was corked, and for a single one. */
interface Writer {
  _writev(chunks: readonly Chunk[], callback: Callback): void;
  _write(chunk: string, encoding: string, callback: Callback): void;
}

/**
 * Makes a connection write the small chunks of a message as one text. For a list of chunks Node allocates several objects and asks V8 for
 * each of their parts, which takes longer than copying them. latin1 maps each byte to one character.
 */
export function joinSmallWrites(socket: Socket): void {
  const writer = socket as unknown as Writer;
  const writeList = writer._writev.bind(writer);
  writer._writev = (chunks, callback) => {
    const text = joined(chunks);
    if (text === null) writeList(chunks, callback);
    else writer._write(text, 'latin1', callback);
  };
}

/** @returns null if they are not small, or contain other text than latin1. */
function joined(chunks: readonly Chunk[]): string | null {
  let text = '';
  for (const { chunk, encoding } of chunks) {
    if (text.length + chunk.length > MAX_TEXT_BYTES) return null;
    if (typeof chunk !== 'string') text += chunk.toString('latin1');
    else if (encoding === 'latin1') text += chunk;
    else return null;
  }
  return text;
}
