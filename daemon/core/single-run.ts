/** Work that runs once at a time: concurrent callers share a run. */
export class SingleRun<T = void> {
  readonly #afterEach: () => void;
  #current: Promise<T> | null = null;
  /** The run after the one in progress, which somebody waits for. */
  #next: Promise<T> | null = null;

  /** @param afterEach called after each run, successful or not. The next run may begin by then. */
  constructor(afterEach: () => void = () => undefined) {
    this.#afterEach = afterEach;
  }

  /** The run in progress. */
  get current(): Promise<T> | null {
    return this.#current;
  }

  /** Shares the run in progress. @param work started at once if there is none; otherwise not called. */
  run(work: () => Promise<T>): Promise<T> {
    this.#current ??= work().finally(() => {
      this.#current = null;
      this.#afterEach();
    });
    return this.#current;
  }

  /**
   * Never shares the run in progress, which has begun before this call and may have missed what the caller needs: the next run begins after it.
   *
   * @param work not called if another caller waits for the next run already.
   */
  runAfresh(work: () => Promise<T>): Promise<T> {
    this.#next ??= Promise.resolve(this.#current)
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.run(work);
      });
    return this.#next;
  }
}
