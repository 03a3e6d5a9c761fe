import type { Clock } from '../core/ports.js';

/** The system clock. Its timers do not keep the process alive. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};
