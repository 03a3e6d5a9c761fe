/**
 * Memory that one report leaves for the next. With new memory for each page, V8 looks at its whole heap after every fifth page, because
 * it counts the bytes of typed arrays. Only the largest piece that was given back is stored.
 */
export class SpareMemory {
  #spare = new ArrayBuffer(0);

  /** @returns at least so many bytes, with any content. */
  take(bytes: number): ArrayBuffer {
    const memory = this.#spare.byteLength < bytes ? new ArrayBuffer(bytes) : this.#spare;
    this.#spare = new ArrayBuffer(0);
    return memory;
  }

  /** Call when nobody uses it any longer. What is never given back is collected as garbage. */
  give(memory: ArrayBuffer): void {
    if (memory.byteLength > this.#spare.byteLength) this.#spare = memory;
  }
}
