/** A stream of the daemon that is asked for again whenever it ends. */
import { ApiError, type Streamed, type StreamOptions, Unreachable } from './client.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

export interface Follow<T> {
  /** Asks the daemon. */
  open: (options: StreamOptions) => AsyncIterable<Streamed<T>>;
  /** The next one is waited for when this is done. */
  item: (item: T, id: string) => Promise<void> | void;
  /** The daemon has begun to answer. */
  connected?: () => void;
  /** It has ended the stream, broke off or did not answer. @param error null where it ended in order. */
  lost: (error: unknown, againInMs: number) => void;
  /** Whether it is asked again after this. @param isFirst it has never ended in order before. */
  mayPass?: (error: unknown, isFirst: boolean) => boolean;
  /** Begins behind this event. */
  lastEventId?: string | undefined;
  signal: AbortSignal;
  /** Resolves after so long, or when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Gives each item as it comes. When the daemon ends the stream or is lost, it is asked for what came after the last one: soon at
 * first, and later with each time in vain. Resolves when `signal` is aborted.
 *
 * @throws what asking again does not mend, and what `item` throws.
 */
export async function followed<T>(follow: Follow<T>): Promise<void> {
  const { signal, item, connected, lost, pause } = follow;
  const isOver = () => signal.aborted;
  let lastEventId = follow.lastEventId;
  let delayMs = FIRST_DELAY_MS;
  let isFirst = true;
  while (!isOver()) {
    let error: unknown = null;
    let isShowing = false;
    try {
      for await (const { id, item: next } of follow.open({ lastEventId, signal, opened: connected })) {
        lastEventId = id;
        delayMs = FIRST_DELAY_MS;
        isShowing = true;
        await item(next, id);
        isShowing = false;
      }
      isFirst = false; // It was there, and has ended it.
    } catch (problem) {
      if (isShowing || !(follow.mayPass ?? mayPass)(problem, isFirst)) throw problem;
      error = problem;
    }
    if (isOver()) return;
    // Between half of it and all of it: not all who lost it come back together.
    const againInMs = delayMs * (0.5 + Math.random() / 2);
    lost(error, againInMs);
    await pause(againInMs, signal);
    delayMs = Math.min(2 * delayMs, LONGEST_DELAY_MS);
  }
}

/** Whether asking again may mend it. */
export const mayPass = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof ApiError && (error.status >= 500 || error.status === 429));
