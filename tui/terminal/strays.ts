import type { Writable } from 'node:stream';

// Whoever writes more than this beside the screen is not read to the end.
const MOST_KEPT = 64 * 1024;

/**
 * What others in the process write to the streams while the screen is ours: a library's warning, a forgotten
 * `console.log`. On the screen it would stand in the middle of a frame; it is kept for afterwards.
 */
export class Strays {
  readonly #streams: readonly Writable[];
  #kept = '';
  #originals: (() => void)[] = [];

  constructor(streams: readonly Writable[]) {
    this.#streams = streams;
  }

  catch(): void {
    if (this.#originals.length > 0) return;
    for (const stream of this.#streams) {
      const write = stream.write; // eslint-disable-line @typescript-eslint/unbound-method
      const caught = (chunk: unknown, ...rest: unknown[]) => {
        this.#keep(typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString());
        const done = rest.find((it) => typeof it === 'function') as (() => void) | undefined;
        if (done) queueMicrotask(done);
        return true;
      };
      Object.assign(stream, { write: caught });
      this.#originals.push(() => Object.assign(stream, { write }));
    }
  }

  release(): void {
    for (const restore of this.#originals.splice(0)) restore();
  }

  /** What was caught since the last time. */
  take(): string {
    const kept = this.#kept;
    this.#kept = '';
    return kept;
  }

  #keep(text: string): void {
    this.#kept += text.slice(0, MOST_KEPT - this.#kept.length);
  }
}
