/** Counters for rate limits. */

export interface RateWindow {
  limit: number;
  windowMs: number;
}

/** Result of counting one request in a window. */
export interface RateDecision {
  isAllowed: boolean;
  /** Time until the window ends. */
  resetMs: number;
}

/** Fixed windows: a window begins with the first request of a key and ends `windowMs` later. */
export interface RateWindows {
  /** Counts a request. @throws {StoreUnavailable} (or rejects with it) when the shared counter is unavailable. */
  take(key: string, window: RateWindow): RateDecision | Promise<RateDecision>;
}
