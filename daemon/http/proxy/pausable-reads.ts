import type { Socket } from 'node:net';

/**
 * Pauses what undici reads from a connection. undici's own way, returning `false` for a piece of the body, must not be used: if the
 * upstream then closes the connection, undici fails an assertion in an event handler, which would end the process. undici reads only with
 * `socket.read()`, when the socket is `readable`.
 */
export class PausableReads {
  readonly #socket: Socket;
  #isPaused = false;

  /** @param onParsed called when undici has parsed what it read before. */
  constructor(socket: Socket, onParsed: () => void) {
    this.#socket = socket;
    const read = socket.read.bind(socket);
    // Node calls `read(0)` to fill the buffer of the socket, and to end it once it is empty.
    socket.read = (size?: number): unknown => {
      if (size === 0) return read(0);
      onParsed();
      // undici must not get anything for a connection that was ended meanwhile.
      return this.#isPaused || socket.destroyed ? null : read(size);
    };
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Lets undici read again, but only with the next event of the socket. */
  unpause(): void {
    this.#isPaused = false;
  }

  /** Lets undici read what has arrived meanwhile. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    // Not at once: while undici parses what another connection has read, it cannot parse anything else.
    process.nextTick(() => {
      if (!this.#isPaused) this.#socket.emit('readable');
    });
  }
}
