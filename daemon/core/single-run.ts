/** Work that runs once at a time: concurrent callers share the run in progress. */
export class SingleRun<T = void> {
  readonly #afterEach: () => void;
  #current: Promise<T> | null = null;

  /** @param afterEach called after each run, successful or not. The next run may begin by then. */
  constructor(afterEach: () => void = () => undefined) {
    this.#afterEach = afterEach;
  }

  /** The run in progress. */
  get current(): Promise<T> | null {
    return this.#current;
  }

  /** @param work started at once if no run is in progress; otherwise not called. */
  run(work: () => Promise<T>): Promise<T> {
    this.#current ??= work().finally(() => {
      this.#current = null;
      this.#afterEach();
    });
    return this.#current;
  }
}
