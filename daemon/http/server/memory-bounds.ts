/** Memory limits for all clients together, on all listeners of a process. */
import type { Clock, Log } from '../../core/ports.js';
import { Intake } from './intake.js';
import { LogThrottle } from './log-throttle.js';
import { UnreadResponses } from '../unread-responses.js';

const LOG_EVERY_MS = 10_000;

export interface Heap {
  /** Whether the heap has no room for another request. */
  readonly isFull: boolean;
}

export class MemoryBounds {
  readonly intake: Intake;
  readonly unreadResponses: UnreadResponses;
  /** Number of connections that were closed because memory was short. */
  dropped = 0;

  constructor({ clock, heap, log }: { clock: Clock; heap: Heap; log: Pick<Log, 'warn'> }) {
    const countAndLog = (message: string) => {
      const throttle = new LogThrottle(clock, LOG_EVERY_MS, (connections) => {
        log.warn(message, { connections });
      });
      return () => {
        this.dropped += 1;
        throttle.record();
      };
    };
    this.intake = new Intake({
      clock,
      heap,
      onDropped: countAndLog('connections were closed: too much was sent that could not be served yet'),
    });
    this.unreadResponses = new UnreadResponses({
      clock,
      heap,
      onDropped: countAndLog('connections were closed: too many responses were not read by their clients'),
    });
  }
}
