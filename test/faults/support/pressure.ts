import { setTimeout as sleep } from 'node:timers/promises';
import type { Script } from './upstream.js';

/** Waits until `progress` stops changing, because nothing reports that the kernel's buffers are full. */
export async function untilStalled(progress: () => number, lookEveryMs: number): Promise<number> {
  let last = progress();
  for (let looks = 0; looks < 4; looks++) {
    await sleep(lookEveryMs);
    if (progress() !== last) looks = -1;
    last = progress();
  }
  return last;
}

/** Responds with that many bytes, as fast as they are read. */
export const pumping =
  (bytes: number): Script =>
  (exchange) => {
    exchange.send(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
    void exchange.pump(bytes);
  };
