/** The memory limit of a process, and those who keep to it on all its listeners. */
import type { Live } from '../../../config/settings.js';
import { MemoryLimit } from '../../core/memory-limit.js';
import type { Clock, Log } from '../../core/ports.js';
import { UnreadResponses } from '../unread-responses.js';
import { Intake } from './intake.js';
import { LogThrottle } from './log-throttle.js';

const MAX_BYTES = 48 * 1024 * 1024;
const LOG_EVERY_MS = 10_000;

export interface Heap {
  /** Whether the heap has no room for another request. */
  readonly isFull: boolean;
}

export interface MemoryBoundsOptions {
  clock: Clock;
  heap: Heap;
  log: Pick<Log, 'warn'>;
  /** The current settings, in a process with a cache: there must be room for the largest response. */
  live?: Live<'httpCacheMaxObjectBytes'>;
}

export class MemoryBounds {
  readonly memory: MemoryLimit;
  readonly intake: Intake;
  readonly unreadResponses: UnreadResponses;
  /** Number of connections and copies that were dropped because memory was short. */
  dropped = 0;

  constructor({ clock, heap, log, live }: MemoryBoundsOptions) {
    const throttle = new LogThrottle(clock, LOG_EVERY_MS, (connections) => {
      log.warn('connections were closed: too much was waiting for their clients or providers', { connections });
    });
    this.memory = new MemoryLimit({
      heap,
      maxBytes: () => MAX_BYTES + (live?.current.httpCacheMaxObjectBytes ?? 0),
      onDropped: () => {
        this.dropped += 1;
        throttle.record();
      },
    });
    this.intake = new Intake({ clock, memory: this.memory });
    this.unreadResponses = new UnreadResponses({ clock, memory: this.memory });
  }
}
