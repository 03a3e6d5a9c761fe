import type { Writable } from 'node:stream';

// Output beyond this limit is dropped.
const MAX_CAPTURED = 64 * 1024;

/**
 * Capture of stray output: what other code in the process writes to stdout and stderr while the screen is in use, such as a warning of
 * a library or a forgotten `console.log`. It would corrupt the frame, so it is printed after the session.
 */
export class StrayOutput {
  readonly #streams: readonly Writable[];
  #captured = '';
  #originals: (() => void)[] = [];

  constructor(streams: readonly Writable[]) {
    this.#streams = streams;
  }

  catch(): void {
    if (this.#originals.length > 0) return;
    for (const stream of this.#streams) {
      const write = stream.write; // eslint-disable-line @typescript-eslint/unbound-method
      const caught = (chunk: unknown, ...rest: unknown[]) => {
        this.#capture(typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString());
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

  /** Returns and clears the captured output. */
  take(): string {
    const kept = this.#captured;
    this.#captured = '';
    return kept;
  }

  #capture(text: string): void {
    this.#captured += text.slice(0, MAX_CAPTURED - this.#captured.length);
  }
}
