/** A connection through the channel between a worker and its primary: no other process can open one, or read it. */
import { Duplex } from 'node:stream';
import type { ClientEnds } from './protocol.js';

interface TunnelOptions {
  /** Resolves when the other side has room for more. @param bytes null after the last ones. */
  send: (bytes: Uint8Array | null) => Promise<unknown>;
  onClosed: () => void;
}

export class Tunnel extends Duplex implements ClientEnds {
  readonly remoteAddress: string | undefined;
  readonly localAddress: string | undefined;
  readonly #options: TunnelOptions;
  #wake: () => void = () => undefined;

  /** @param ends the ends of the connection that it stands for. */
  constructor(options: TunnelOptions, ends: ClientEnds) {
    super({ allowHalfOpen: false });
    this.#options = options;
    this.remoteAddress = ends.remoteAddress;
    this.localAddress = ends.localAddress;
    this.on('error', () => undefined); // The other side has ended. Readers and writers see that too.
  }

  /** Bytes from the other side. @returns a promise if there is no room for more. */
  receive(bytes: Uint8Array | null): undefined | Promise<undefined> {
    if (this.destroyed) return undefined;
    const hasRoom = this.push(bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (hasRoom || bytes === null) return undefined;
    return new Promise((resolve) => {
      this.#wake = () => {
        resolve(undefined);
      };
    });
  }

  override _read(): void {
    this.#wake();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#pass(bytes, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#pass(null, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wake();
    this.#options.onClosed();
    done(error);
  }

  #pass(bytes: Uint8Array | null, done: (error?: Error | null) => void): void {
    this.#options.send(bytes).then(
      () => {
        done();
      },
      (error: unknown) => {
        done(error as Error);
      },
    );
  }
}
