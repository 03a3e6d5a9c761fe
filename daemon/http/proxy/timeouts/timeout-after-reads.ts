import type { Clock } from '../../../core/ports.js';

// Node's own timers are late by some milliseconds under load; anything later means that the process was stalled.
const STALL_MS = 50;
const NEXT_TURN_MS = 1;

/**
 * Calls `action` after `ms`. If the process was stalled meanwhile (suspended or blocked), it first lets the event loop read what has
 * arrived. Node runs timers before it reads sockets: a response that arrived in time would count as missing, and the upstream would be
 * blamed.
 *
 * @returns a function that cancels the timeout.
 */
export function timeoutAfterReads(clock: Clock, ms: number, action: () => void): () => void {
  const dueMs = clock.monotonic() + ms;
  let cancel = clock.after(ms, () => {
    if (clock.monotonic() < dueMs + STALL_MS) action();
    else cancel = clock.after(NEXT_TURN_MS, action);
  });
  return () => {
    cancel();
  };
}
