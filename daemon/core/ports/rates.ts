/** What rate limits ask of where they are counted. */

export interface RateWindow {
  limit: number;
  windowMs: number;
}

/** What a window says to one more request. */
export interface RateTaken {
  isWithin: boolean;
  /** Until the window ends. */
  resetMs: number;
}

/** Fixed windows: one begins with the first request of a key and ends `windowMs` later. */
export interface RateWindows {
  /** Counts a request. @throws {StoreUnavailable} or rejects with it, when a shared count cannot be had. */
  take(key: string, window: RateWindow): RateTaken | Promise<RateTaken>;
}
