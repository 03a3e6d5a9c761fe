const LF = 0x0a;
const CR = 0x0d;

/** Boundary between server-sent events. An event ends with an empty line; a line ends with LF, CR or CRLF. */
export class EventBoundary {
  /** The last bytes so far: as many as two line ends can take. An empty stream counts as being between events. */
  #last: number[] = [LF, LF];

  read(chunk: Buffer): void {
    const bytes = chunk.subarray(-3);
    this.#last = bytes.length === 3 ? [...bytes] : [...this.#last, ...bytes].slice(-3);
  }

  get isReached(): boolean {
    const last = [...this.#last];
    if (last.at(-1) === LF && last.at(-2) === CR) last.pop();
    return isLineEnd(last.at(-1)) && isLineEnd(last.at(-2));
  }
}

const isLineEnd = (byte: number | undefined) => byte === LF || byte === CR;
