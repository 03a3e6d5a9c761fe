/**
 * What is done for requests that are over: what they said is read, and all who keep a record are told.
 *
 * Of all that end in one turn of the event loop, together at its end. One by one, in between what others are in the middle of, each
 * would find its code and data gone from the processor's caches: that took a ninth of a request's time.
 */
export interface Over {
  /** It neither waits nor throws. */
  tell(): void;
}

export class Afterwards {
  #over: Over[] = [];

  add(request: Over): void {
    this.#over.push(request);
    if (this.#over.length === 1) setImmediate(this.settle);
  }

  /** Now, for whoever cannot wait for the end of the turn. */
  readonly settle = (): void => {
    const over = this.#over;
    this.#over = [];
    for (const request of over) request.tell();
  };
}
