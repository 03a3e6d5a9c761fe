import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const PIECE_BYTES = 64 * 1024;

/**
 * Writes until nothing more is accepted, or `mostBytes` are written.
 *
 * @param piece is written again and again.
 * @returns the number of bytes written.
 */
export async function writeUntilItStalls(
  stream: NodeJS.WritableStream,
  mostBytes = Infinity,
  piece = Buffer.alloc(PIECE_BYTES, 'x'),
): Promise<number> {
  let written = 0;
  stream.on('error', () => undefined);
  const write = async () => {
    while (written < mostBytes) {
      const rest = Math.min(piece.length, mostBytes - written);
      written += rest;
      if (!stream.write(piece.subarray(0, rest))) await once(stream, 'drain');
    }
    stream.end();
  };
  void write().catch(() => undefined);
  // Nothing reports that the kernel's buffers are full: the counter just stops changing.
  for (let last = -1; last !== written;) {
    last = written;
    await sleep(150);
  }
  return written;
}
