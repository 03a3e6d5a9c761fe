/** The windows of the limits in a minute. Times are monotonic, in ms. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** With the second that is partly expired, which counts in full. */
const SECONDS = 61;

/** How long an amount stays in a window, at most. */
export const IN_WINDOW_MS = SECONDS * SECOND_MS;

/** Amounts of the last 60 seconds. In any 60 seconds there is no more than the sum that it shows, which is at most a second late. */
export class MinuteWindow {
  readonly #amounts = new Float64Array(SECONDS);
  /** The last second that has a place. */
  #second = -Infinity;
  #sum = 0;

  add(atMs: number, amount: number): void {
    this.#moveTo(atMs);
    this.#put(Math.floor(atMs / SECOND_MS), amount);
  }

  /** Changes an amount that was added at `atMs`, if it is still in the window. It is not reduced below nothing. */
  correct(atMs: number, by: number, nowMs: number): void {
    this.#moveTo(nowMs);
    const second = Math.floor(atMs / SECOND_MS);
    if (second <= this.#second - SECONDS) return;
    this.#put(second, Math.max(by, -(this.#amounts[second % SECONDS] ?? 0)));
  }

  sum(nowMs: number): number {
    this.#moveTo(nowMs);
    return this.#sum;
  }

  /** Until the sum is at most `most`, if nothing is added. */
  untilAtMost(most: number, nowMs: number): number {
    this.#moveTo(nowMs);
    let sum = this.#sum;
    if (sum <= most) return 0;
    for (let second = this.#second - SECONDS + 1; second <= this.#second; second++) {
      sum -= this.#amounts[second % SECONDS] ?? 0;
      if (sum <= most) return (second + SECONDS) * SECOND_MS - nowMs;
    }
    return IN_WINDOW_MS;
  }

  #put(second: number, amount: number): void {
    const at = second % SECONDS;
    this.#amounts[at] = (this.#amounts[at] ?? 0) + amount;
    this.#sum += amount;
  }

  #moveTo(nowMs: number): void {
    const second = Math.floor(nowMs / SECOND_MS);
    if (second <= this.#second) return;
    if (second - this.#second >= SECONDS) {
      this.#amounts.fill(0);
      this.#sum = 0;
    } else {
      for (let passed = this.#second + 1; passed <= second; passed++) {
        this.#sum -= this.#amounts[passed % SECONDS] ?? 0;
        this.#amounts[passed % SECONDS] = 0;
      }
    }
    this.#second = second;
  }
}

/**
 * Tokens of models. What is charged beyond the limit, because a model used more than was estimated, is a debt that is paid off at the limit
 * in a minute: otherwise it would be forgotten a minute later, and the mean would exceed the limit.
 */
export class TokenWindow {
  readonly #window = new MinuteWindow();
  /** What was charged, less the limit for each minute that has passed. */
  #level = 0;
  #levelAtMs = 0;

  /** Until that many more fit. */
  wait(tokens: number, limit: number, nowMs: number): number {
    this.#drain(limit, nowMs);
    const room = limit - tokens;
    const overMs = ((this.#level - room) * MINUTE_MS) / limit;
    return Math.max(0, overMs, this.#window.untilAtMost(room, nowMs));
  }

  add(tokens: number, limit: number, nowMs: number): void {
    this.#drain(limit, nowMs);
    this.#level += tokens;
    this.#window.add(nowMs, tokens);
  }

  /** Changes what was charged at `atMs`. */
  correct(atMs: number, by: number, limit: number, nowMs: number): void {
    this.#drain(limit, nowMs);
    this.#level = Math.max(0, this.#level + by);
    this.#window.correct(atMs, by, nowMs);
  }

  /** What is charged now, of the limit. */
  used(limit: number, nowMs: number): number {
    this.#drain(limit, nowMs);
    return Math.ceil(Math.max(this.#level, this.#window.sum(nowMs)));
  }

  #drain(limit: number, nowMs: number): void {
    this.#level = Math.max(0, this.#level - ((nowMs - this.#levelAtMs) * limit) / MINUTE_MS);
    this.#levelAtMs = nowMs;
  }
}
