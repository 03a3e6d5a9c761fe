/** Follows an event stream of the daemon and reconnects whenever it ends. */
import { ApiError, type StreamItem, type StreamOptions, Unreachable } from './client.js';

const INITIAL_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

export interface FollowOptions<T> {
  /** Opens the stream. */
  open: (options: StreamOptions) => AsyncIterable<StreamItem<T>>;
  /** Called for each item. The next item is read after its promise resolves. */
  onItem: (item: T, id: string) => Promise<void> | void;
  /** Called when the daemon has started a stream. */
  onConnected?: () => void;
  /** Called when the stream ended, broke off or could not be opened. @param error null after a normal end. */
  onLost: (error: unknown, againInMs: number) => void;
  /** Whether to reconnect after this error. @param isFirst true until a stream has ended normally. */
  isRetryable?: (error: unknown, isFirst: boolean) => boolean;
  /** Start after this event. */
  lastEventId?: string | undefined;
  signal: AbortSignal;
  /** Resolves after `ms`, or when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Passes on each item as it arrives. When the stream ends or the connection is lost, it reconnects with the ID of the last event, with
 * exponential backoff. Resolves when `signal` is aborted.
 *
 * @throws errors that are not retryable, and errors of the item callback.
 */
export async function followStream<T>(follow: FollowOptions<T>): Promise<void> {
  const { signal, onItem, onConnected, onLost, pause } = follow;
  const isAborted = () => signal.aborted;
  let lastEventId = follow.lastEventId;
  let delayMs = INITIAL_DELAY_MS;
  let isFirst = true;
  while (!isAborted()) {
    let error: unknown = null;
    let isDelivering = false;
    try {
      for await (const { id, item: next } of follow.open({ lastEventId, signal, onOpen: onConnected })) {
        lastEventId = id;
        delayMs = INITIAL_DELAY_MS;
        isDelivering = true;
        await onItem(next, id);
        isDelivering = false;
      }
      isFirst = false; // The stream ended normally.
    } catch (problem) {
      if (isDelivering || !(follow.isRetryable ?? isRetryable)(problem, isFirst)) throw problem;
      error = problem;
    }
    if (isAborted()) return;
    // Jitter: 50 to 100 % of the delay, so that clients do not reconnect all at once.
    const againInMs = delayMs * (0.5 + Math.random() / 2);
    onLost(error, againInMs);
    await pause(againInMs, signal);
    delayMs = Math.min(2 * delayMs, MAX_DELAY_MS);
  }
}

/** Whether a retry may succeed. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof ApiError && (error.status >= 500 || error.status === 429));
