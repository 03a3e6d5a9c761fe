import { setTimeout as sleep } from 'node:timers/promises';

// A check costs something, often a request. So slow conditions are checked less often, and noticed 5 % later at most.
const PART = 20;
const SHORTEST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 25;

/** Waits for a condition that another process or the kernel brings about without a notification. */
export async function eventually(what: string, holds: () => unknown, withinMs = 15_000): Promise<void> {
  const beganAt = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - beganAt;
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await sleep(Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / PART)));
  }
}
