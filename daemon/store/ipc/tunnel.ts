/**
 * Connections through the channel between a worker and its primary: no other process can open one, or read it.
 *
 * Bytes travel in pieces, and the next piece of a connection is sent when the other side has room for it. So either side holds a few pieces of a
 * connection whose reader has stopped, and small writes that wait for their turn are one message.
 */
import { Duplex } from 'node:stream';
import type { LargeCall } from './channel.js';
import type { ClientEnds, TunnelPiece } from './protocol.js';

const PIECE_BYTES = 16 * 1024;

/** What tunnels use of the channel. */
interface TunnelChannel {
  callLarge(name: 'tunnel', piece: TunnelPiece): LargeCall;
  send(name: 'tunnelClosed', id: number): void;
  handle(name: 'tunnel', handler: (piece: TunnelPiece) => void | Promise<void>): void;
  handle(name: 'tunnelClosed', handler: (id: number) => void): void;
}

/** The open tunnels of a channel. */
export class Tunnels {
  readonly #channel: TunnelChannel;
  readonly #open = new Map<number, Tunnel>();

  constructor(channel: TunnelChannel) {
    this.#channel = channel;
    channel.handle('tunnel', ({ id, bytes }) => this.#open.get(id)?.receive(bytes));
    channel.handle('tunnelClosed', (id) => {
      this.#open.get(id)?.destroy();
    });
  }

  /** @param ends the ends of the client's connection, for which it stands. */
  open(id: number, ends: ClientEnds): Tunnel {
    const tunnel = new Tunnel(
      {
        // Resolves when the other side has room for more.
        send: (bytes) => this.#channel.callLarge('tunnel', { id, bytes }),
        onClosed: () => {
          this.#open.delete(id);
          this.#channel.send('tunnelClosed', id);
        },
      },
      ends,
    );
    this.#open.set(id, tunnel);
    return tunnel;
  }
}

interface TunnelOptions {
  /** @param bytes null after the last ones. */
  send: (bytes: Uint8Array | null) => LargeCall;
  onClosed: () => void;
}

export class Tunnel extends Duplex implements ClientEnds {
  readonly remoteAddress: string | undefined;
  readonly localAddress: string | undefined;
  /** Bytes that the other side has taken, and passed on except for a few pieces. */
  takenBytes = 0;
  readonly #options: TunnelOptions;
  #wake: () => void = () => undefined;
  #withdraw: () => void = () => undefined;

  constructor(options: TunnelOptions, ends: ClientEnds) {
    super({ allowHalfOpen: false, highWaterMark: PIECE_BYTES });
    this.#options = options;
    this.remoteAddress = ends.remoteAddress;
    this.localAddress = ends.localAddress;
    this.on('error', () => undefined); // The other side has ended. Readers and writers see that too.
  }

  /** Bytes from the other side. @returns a promise if there is no room for more. */
  receive(bytes: Uint8Array | null): void | Promise<void> {
    if (this.destroyed) return;
    const hasRoom = this.push(bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (hasRoom || bytes === null) return;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  override _read(): void {
    this.#wake();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#send([bytes], done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#pass(null).then(() => {
      done();
    }, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wake();
    this.#withdraw();
    this.#options.onClosed();
    done(error);
  }

  #send(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    const sendAll = async () => {
      for (const piece of piecesOf(chunks)) {
        await this.#pass(piece);
        this.takenBytes += piece.length;
        if (this.destroyed) return;
      }
    };
    sendAll().then(() => {
      done();
    }, done);
  }

  #pass(bytes: Uint8Array | null): Promise<unknown> {
    const { reply, withdraw } = this.#options.send(bytes);
    this.#withdraw = withdraw;
    return reply;
  }
}

/** Copies what is smaller than a piece. A response that many clients get is not copied as a whole for each of them. */
function* piecesOf(chunks: readonly Buffer[]): Generator<Buffer> {
  let gathered: Buffer[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const part = chunk.subarray(at, at + PIECE_BYTES - bytes);
      at += part.length;
      bytes += part.length;
      gathered.push(part);
      if (bytes < PIECE_BYTES) continue;
      yield joined(gathered);
      gathered = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield joined(gathered);
}

const joined = (parts: readonly Buffer[]): Buffer => (parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts));
