/** Memory for what is read from the upstream. */
import type { OnReadOpts, Socket } from 'node:net';

/** The most that is read at once, as with Node's own reads. */
const READ_BYTES = 64 * 1024;
/** Several responses to chats fit into one. */
const BLOCK_BYTES = 8 * 1024;

interface Block {
  bytes: Buffer;
  /** Where its free part begins. */
  end: number;
}

/**
 * The option `onread` for the connections of a process. By default, Node allocates 64 KB for each read and then shrinks them, and the
 * garbage collector frees each of them separately while requests wait. With this option all connections read into the same buffer, and
 * what was read is copied into a block of its connection, which small reads share. As a block belongs to one connection, data that
 * waits for a slow client retains little more than itself.
 */
export function readIntoBlocks(): OnReadOpts {
  const blocks = new WeakMap<Socket, Block>();

  /** @returns a copy of the first `length` bytes. */
  function copied(socket: Socket, read: Buffer, length: number): Buffer {
    if (length > BLOCK_BYTES / 2) return Buffer.from(read.subarray(0, length));
    let block = blocks.get(socket);
    if (!block || block.end + length > BLOCK_BYTES) {
      block = { bytes: Buffer.allocUnsafeSlow(BLOCK_BYTES), end: 0 };
      blocks.set(socket, block);
    }
    const begin = block.end;
    block.end += read.copy(block.bytes, begin, 0, length);
    return block.bytes.subarray(begin, block.end);
  }

  return {
    buffer: Buffer.allocUnsafeSlow(READ_BYTES),
    /** `this` is the connection. The stream would not get the data otherwise. */
    callback(this: Socket, length: number, buffer: Uint8Array): boolean {
      return this.push(copied(this, buffer as Buffer, length));
    },
  };
}
