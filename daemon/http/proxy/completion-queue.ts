/**
 * Queue of ended requests whose results are still to be published: to usage, events, the audit log and metrics.
 *
 * Publishing each one as it ends, in between other work, took a ninth of the time of a request. Publishing parses bytes from strangers,
 * and many requests can end at once, so it is done in slices.
 */
import type { Clock } from '../../core/ports.js';
import { TurnQueue } from './turn-queue.js';

// Short enough that no client notices the pause of the event loop.
const MAX_SLICE_MS = 1;

export interface Completed {
  /** Must neither wait nor throw. */
  publish(): void;
}

export class CompletionQueue extends TurnQueue<Completed> {
  constructor(clock: Pick<Clock, 'monotonic'>) {
    super(clock, MAX_SLICE_MS, (request) => {
      request.publish();
    });
  }
}
