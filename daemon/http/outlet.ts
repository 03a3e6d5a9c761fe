import { GatheredBytes } from '../core/gathered-bytes.js';
import { type HeldMemory, PIECE_BYTES } from '../core/memory-limit.js';

// Nothing more is read from the other side while as much waits.
const MAX_WAITING_BYTES = 16 * 1024;
// So many writes may be under way, whatever their size: what is read at once is written at once.
const MAX_WRITES = 4;

type Written = (error?: Error | null) => void;

export interface OutletOptions {
  /**
   * Writes to the connection.
   *
   * @param written called once the kernel has taken the bytes.
   * @returns false if the connection has much to write, as `Writable.write` does.
   */
  write: (bytes: Buffer, written: Written) => boolean;
  /** Called after `send` returned false, once everything was written. */
  onReady: () => void;
  memory: HeldMemory;
}

/**
 * The way to a connection that may be slow. A few writes are under way at a time; what arrives meanwhile is gathered and written as one
 * piece. So a peer that sends single bytes to one that does not read makes the daemon hold no more than these bytes.
 */
export class Outlet {
  readonly #options: OutletOptions;
  readonly #gathered = new GatheredBytes();
  /** The writes that are under way, and their bytes. */
  #writes = 0;
  #writing = 0;
  #isReaderPaused = false;
  /** Whether what is written from now on counts elsewhere. */
  #hasEnded = false;

  constructor(options: OutletOptions) {
    this.#options = options;
  }

  /** Whether the kernel has not taken everything. */
  get isBusy(): boolean {
    return this.#writes > 0;
  }

  /** @returns false if nothing more should be read until `onReady`. */
  send(bytes: Buffer): boolean {
    if (this.#writes < MAX_WRITES && this.#gathered.length === 0) {
      this.#write(bytes);
    } else {
      this.#gathered.add(bytes);
      this.#count();
    }
    this.#isReaderPaused ||= this.#writing + this.#gathered.length >= MAX_WAITING_BYTES;
    return !this.#isReaderPaused;
  }

  /** Writes everything that waits, although the kernel may have no room. Call it before the end of the stream. */
  flush(): void {
    const { write, memory } = this.#options;
    if (this.#gathered.length > 0) write(this.#gathered.take(), () => undefined);
    this.#hasEnded = true;
    memory.release();
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#writes += 1;
    this.#writing += bytes.length;
    const written: Written = (error) => {
      this.#writes -= 1;
      this.#writing -= bytes.length;
      if (!error) this.#wroteSome(); // Else the connection is closed; its owner learns of that.
    };
    // Counted only if it may have to wait: most writes are taken at once.
    if (!this.#options.write(bytes, written)) this.#count();
  }

  #wroteSome(): void {
    if (this.#gathered.length > 0) this.#write(this.#gathered.take());
    this.#count();
    if (!this.#isReaderPaused || this.#writes > 0) return;
    this.#isReaderPaused = false;
    this.#options.onReady();
  }

  #count(): void {
    if (this.#hasEnded) return;
    const waiting = this.#gathered.memory + this.#writing;
    this.#options.memory.hold(waiting === 0 ? 0 : waiting + PIECE_BYTES);
  }
}
