/** What is told of a failure besides what happened. */
export interface Explanation {
  why?: string;
  /** What to do next. */
  advice?: string;
  /** For programs; the daemon's own where it gave one. */
  code?: string;
  requestId?: string | null;
  cause?: unknown;
}
