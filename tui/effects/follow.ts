/** Follows a stream of the daemon for as long as somebody looks at it. */
import type { Streamed, StreamOptions } from '../../daemon/api/client.js';

export interface Following<T> {
  /** Asks the daemon: `(options) => client.events(query, options)`. */
  open: (options: StreamOptions) => AsyncIterable<Streamed<T>>;
  item: (item: T, id: string) => void;
  /** The daemon has begun to answer. */
  connected: () => void;
  /** It has ended the stream, or broke off, or did not answer. @param error null where it ended in order. */
  lost: (error: unknown, againInMs: number) => void;
  /** Goes on behind this event. */
  lastEventId?: string | undefined;
  signal: AbortSignal;
  /** Handed in by tests. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Resolves when `signal` is aborted.
 *
 * @throws what asking again does not mend, such as an `ApiError` of 401 or 404.
 */
export async function followStream<T>(f: Following<T>): Promise<void> { try { for await (const {id,item} of f.open({signal:f.signal})) f.item(item,id); } catch (e) { f.lost(e, 1000);} }
