/** The memory limit of a process, and those who keep to it on all its listeners. */
import type { Live } from '../../../config/settings.js';
import { LogThrottle } from '../../core/log-throttle.js';
import { MemoryLimit } from '../../core/memory-limit.js';
import type { Clock, Log } from '../../core/ports.js';
import { Scheduler } from '../scheduler.js';
import { UnreadResponses } from '../unread-responses.js';
import { Intake } from './intake.js';

const MAX_BYTES = 48 * 1024 * 1024;
const LOG_EVERY_MS = 10_000;

export interface Heap {
  /** Whether the heap has no room for another request. */
  readonly isFull: boolean;
}

export interface MemoryLimitSources {
  clock: Clock;
  heap: Heap;
  log: Pick<Log, 'warn'>;
  /** The current settings, in a process with a cache: there must be room for the largest response. */
  live?: Live<'httpCacheMaxObjectBytes'>;
}

/** The memory limit of a process. */
export function memoryLimitOf({ clock, heap, log, live }: MemoryLimitSources): MemoryLimit {
  const throttle = new LogThrottle(clock, log, LOG_EVERY_MS);
  const message = 'connections were closed: too much was waiting for their clients or providers';
  return new MemoryLimit({
    heap,
    maxBytes: () => MAX_BYTES + (live?.current.httpCacheMaxObjectBytes ?? 0),
    onDropped: () => {
      throttle.record('warn', message, (connections) => ({ connections }));
    },
  });
}

/** What the listeners of a process share, so that no client costs the others much time or memory. */
export class MemoryBounds {
  readonly memory: MemoryLimit;
  readonly scheduler: Scheduler;
  readonly intake: Intake;
  readonly unreadResponses: UnreadResponses;

  constructor(clock: Clock, memory: MemoryLimit) {
    this.memory = memory;
    this.scheduler = new Scheduler(clock);
    this.intake = new Intake({ clock, memory, scheduler: this.scheduler });
    this.unreadResponses = new UnreadResponses({ clock, memory });
  }
}
