/** Connections within the process: real HTTP, without a network whose timing would mix with that of the seed. */
import type { Server } from 'node:http';
import { Duplex } from 'node:stream';

/** One end of a connection: bytes written here are read at the other end. */
class End extends Duplex {
  other: End | null = null;

  constructor() {
    super({ allowHalfOpen: true });
    this.on('error', () => undefined);
  }

  override _read(): void {
    // The other end pushes.
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.other?.push(piece);
    done();
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    const { other } = this;
    this.other = null;
    if (other) {
      other.other = null;
      // In its own turn, as over a network.
      process.nextTick(() => other.destroy());
    }
    done();
  }
}

/** @returns the client's end of a new connection to a server, which need not listen. */
export function connectTo(server: Server): Duplex {
  const client = new End();
  const served = new End();
  client.other = served;
  served.other = client;
  server.emit('connection', served);
  return client;
}
