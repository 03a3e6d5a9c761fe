import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 2;

/** Waits for what another process, or the kernel, brings about without saying so. */
export async function eventually(what: string, holds: () => unknown, withinMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}
