export interface Closable {
  close(): Promise<void>;
}

/** Stack of open resources (files, locks, connections), closed together however the process ends. */
export class ResourceStack {
  readonly #resources: Closable[] = [];

  add<T extends Closable>(opened: T): T {
    this.#resources.push(opened);
    return opened;
  }

  /** Closes each resource once, the last one first. An error does not stop the others from being closed. @throws the first error. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (let each = this.#resources.pop(); each; each = this.#resources.pop()) {
      await each.close().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }
}
