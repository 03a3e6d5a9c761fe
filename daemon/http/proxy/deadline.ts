import type { Clock } from '../../core/ports.js';

// Node's own timers are late by a few milliseconds under load.
const LATE_MS = 50;
const ONE_TURN_MS = 1;

/**
 * Calls `action` in `ms`, unless this process stood still meanwhile: then once more of what has arrived is read first. Node looks at
 * its timers before it reads, so that an answer that came long in time would be taken for missing, and the upstream blamed.
 *
 * @returns calls it off.
 */
export function deadline(clock: Clock, ms: number, action: () => void): () => void {
  const dueMs = clock.monotonic() + ms;
  let cancel = clock.after(ms, () => {
    if (clock.monotonic() < dueMs + LATE_MS) action();
    else cancel = clock.after(ONE_TURN_MS, action);
  });
  return () => {
    cancel();
  };
}
