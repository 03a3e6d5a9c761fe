import type { Clock } from './ports.js';

/** Other work waits for up to this long, and for the last part of the work. */
const STRETCH_MS = 3;

/** Runs work that yields after each small part, and lets other work of the process run in between. */
export async function inSlices<T>(clock: Pick<Clock, 'monotonic'>, work: Generator<void, T>): Promise<T> {
  for (;;) {
    const begunAtMs = clock.monotonic();
    do {
      const part = work.next();
      if (part.done) return part.value;
    } while (clock.monotonic() - begunAtMs < STRETCH_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
