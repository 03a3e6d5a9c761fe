import { inTime } from './in-time.js';
import type { Clock } from './ports.js';
import { SingleRun } from './single-run.js';

/** What costs much may take this share of the time of whoever is asked, at most. */
const SHARE = 20;
/** Who asks waits no longer for a new answer while there is an older one. */
const PATIENCE_MS = 50;

/**
 * An answer that is asked for over and over, and may cost much: it is found out anew where that costs little, and now and then where it
 * costs much. Those who ask at the same time get the same one.
 */
export class Spared<T> {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #mayLast: (answer: T) => boolean;
  #last: { answer: T; usableUntilMs: number } | null = null;
  readonly #asking = new SingleRun<T>();

  /** @param mayLast whether an answer may be given again at all. */
  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, mayLast: (answer: T) => boolean = () => true) {
    this.#clock = clock;
    this.#mayLast = mayLast;
  }

  /** @param ask after an error there is no older answer. */
  async current(ask: () => Promise<T>): Promise<T> {
    const last = this.#last;
    if (last && this.#clock.monotonic() < last.usableUntilMs) return last.answer;
    const asking = this.#asking.run(() => this.#ask(ask));
    if (!last) return asking;
    // Who has an older answer by then does not hear of a failure.
    return inTime(this.#clock, PATIENCE_MS, asking, () => last.answer);
  }

  async #ask(ask: () => Promise<T>): Promise<T> {
    const begunAtMs = this.#clock.monotonic();
    try {
      const answer = await ask();
      const endedAtMs = this.#clock.monotonic();
      const usableUntilMs = endedAtMs + SHARE * (endedAtMs - begunAtMs);
      this.#last = this.#mayLast(answer) ? { answer, usableUntilMs } : null;
      return answer;
    } catch (error) {
      this.#last = null;
      throw error;
    }
  }
}
