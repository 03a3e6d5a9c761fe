/** How much memory all clients together may hold, on all listeners of a process. */
import type { Clock, Log } from '../../core/ports.js';
import { Intake } from './intake.js';
import { Seldom } from './seldom.js';
import { Untaken } from '../untaken.js';

const SAY_EVERY_MS = 10_000;

export interface Heap {
  /** Whether there is no room for another request. */
  readonly isFull: boolean;
}

export class Bounds {
  readonly intake: Intake;
  readonly untaken: Untaken;
  /** Connections that were ended because there was no room. */
  dropped = 0;

  constructor({ clock, heap, log }: { clock: Clock; heap: Heap; log: Pick<Log, 'warn'> }) {
    const tell = (message: string) => {
      const seldom = new Seldom(clock, SAY_EVERY_MS, (connections) => {
        log.warn(message, { connections });
      });
      return () => {
        this.dropped += 1;
        seldom.happened();
      };
    };
    this.intake = new Intake({
      clock,
      heap,
      onDropped: tell('connections were ended: too much was sent that could not be served yet'),
    });
    this.untaken = new Untaken({
      clock,
      heap,
      onDropped: tell('connections were ended: too many answers were not read'),
    });
  }
}
