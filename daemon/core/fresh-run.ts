/**
 * Work that runs once at a time, and whose result is as new as each caller needs: a caller gets a run that begins after its call. Callers that arrive
 * during a run share the next one.
 */
export class FreshRun {
  readonly #work: () => Promise<void>;
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  /** @param work does not reject. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  run(): Promise<void> {
    this.#next ??= this.#current.then(() => {
      this.#next = null;
      this.#current = this.#work();
      return this.#current;
    });
    return this.#next;
  }
}
