/** Writes a block to sockets again and again: as fast as the other side reads it, at a limited rate, or in segments of one byte. */
import type { Socket } from 'node:net';

/** Segments that all sockets together send each millisecond: each costs this process as much as the daemon. */
const SEGMENTS_PER_MS = 20;
const LEAST_EVERY_MS = 10;
/** With more sockets, each writes more rarely. */
const SOCKETS_PER_MS = 5;

export interface FloodOptions {
  /** In latin1. */
  block: string;
  /** The most that each socket writes. */
  bytesPerSecond?: number | undefined;
  inSegments?: boolean | undefined;
  /** The number of sockets, to write no more often than this process can beside the daemon. */
  sockets: number;
}

export class Flood {
  readonly #block: Buffer;
  readonly #isLimited: boolean;
  /** Of a limited flood: where each socket goes on in the block. */
  readonly #sockets = new Map<Socket, number>();

  constructor({ block, bytesPerSecond, inSegments = false, sockets }: FloodOptions) {
    this.#block = Buffer.from(block, 'latin1');
    this.#isLimited = inSegments || bytesPerSecond !== undefined;
    if (inSegments) this.#writeSegments();
    else if (bytesPerSecond !== undefined) this.#writeAtRate(bytesPerSecond, sockets);
  }

  begin(socket: Socket): void {
    if (this.#block.length === 0) return;
    if (!this.#isLimited) {
      this.#writeAll(socket);
      return;
    }
    this.#sockets.set(socket, 0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #writeAll(socket: Socket): void {
    while (socket.writable) {
      if (socket.write(this.#block)) continue;
      socket.once('drain', () => {
        this.#writeAll(socket);
      });
      return;
    }
  }

  #writeAtRate(bytesPerSecond: number, sockets: number): void {
    const everyMs = Math.max(LEAST_EVERY_MS, sockets / SOCKETS_PER_MS);
    const mostBytes = Math.ceil((2 * bytesPerSecond * everyMs) / 1_000);
    const blocks = 1 + Math.ceil(mostBytes / this.#block.length);
    const many = Buffer.concat(Array.from({ length: blocks }, () => this.#block));
    let lastMs = performance.now();
    setInterval(() => {
      const nowMs = performance.now();
      const bytes = Math.min(mostBytes, Math.floor((bytesPerSecond * (nowMs - lastMs)) / 1_000));
      lastMs = nowMs;
      for (const [socket, at] of this.#sockets) this.#write(socket, many.subarray(at, at + bytes));
    }, everyMs);
  }

  #writeSegments(): void {
    let turn = 0;
    setInterval(() => {
      const sockets = [...this.#sockets];
      for (let i = 0; i < Math.min(SEGMENTS_PER_MS, sockets.length * SEGMENTS_PER_MS); i++) {
        const [socket] = sockets[turn++ % sockets.length] ?? [];
        if (!socket) continue;
        const at = this.#sockets.get(socket) ?? 0;
        this.#write(socket, this.#block.subarray(at, at + 1));
      }
    }, 1);
  }

  /** What the other side has not read is not written again: the rate is a maximum. */
  #write(socket: Socket, bytes: Buffer): void {
    if (socket.writableLength > 0 || !socket.writable) return;
    socket.write(bytes);
    this.#sockets.set(socket, ((this.#sockets.get(socket) ?? 0) + bytes.length) % this.#block.length);
  }
}
