/** Connections within the process: HTTP as it is spoken, without a network whose moods would mix with those of the seed. */
import type { Server } from 'node:http';
import { Duplex } from 'node:stream';

/** One end of a connection: what is written here is read at the other. */
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
      // In its own turn, as a network would.
      process.nextTick(() => other.destroy());
    }
    done();
  }
}

/** @returns the client's end of a new connection to a server that need not listen. */
export function connectTo(server: Server): Duplex {
  const client = new End();
  const served = new End();
  client.other = served;
  served.other = client;
  server.emit('connection', served);
  return client;
}
