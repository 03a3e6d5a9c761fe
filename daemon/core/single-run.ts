/** Work that is under way once at a time: whoever asks for it meanwhile waits for the run that is under way. */
export class SingleRun<T = void> {
  readonly #afterEach: () => void;
  #current: Promise<T> | null = null;

  /** @param afterEach called when a run is over, however it ended. By then the next one may begin. */
  constructor(afterEach: () => void = () => undefined) {
    this.#afterEach = afterEach;
  }

  /** The run that is under way. */
  get current(): Promise<T> | null {
    return this.#current;
  }

  /** @param work begins at once if no run is under way; otherwise it is not called. */
  run(work: () => Promise<T>): Promise<T> {
    this.#current ??= work().finally(() => {
      this.#current = null;
      this.#afterEach();
    });
    return this.#current;
  }
}
