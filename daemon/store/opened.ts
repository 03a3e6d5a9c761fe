export interface Closable {
  close(): Promise<void>;
}

/** What a process has opened and is to let go of, however it ends: files, locks, connections. */
export class Opened {
  readonly #all: Closable[] = [];

  add<T extends Closable>(opened: T): T {
    this.#all.push(opened);
    return opened;
  }

  /** Closes the last one first, each once; one that fails keeps none before it open. @throws the first error. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (let each = this.#all.pop(); each; each = this.#all.pop()) {
      await each.close().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }
}
