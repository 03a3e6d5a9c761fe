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

// All connections read into it, one at a time: what was read is copied before anything else is read.
const READ = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * The option `onread` for connections. By default, Node allocates 64 KB for each read and then shrinks them, and the garbage collector frees
 * each of them separately while requests wait. With this option, what was read is copied into a block of its connection, which small
 * reads share. A block belongs to one connection. So what waits for a slow client retains at most one block more than its own size.
 */
export function readIntoBlocks(): OnReadOpts {
  const blocks = new WeakMap<Socket, Block>();

  /** @returns a copy of the first `length` bytes. */
  function copied(socket: Socket, length: number): Buffer {
    if (length > BLOCK_BYTES / 2) {
      // Not from Node's pool, which connections share.
      const copy = Buffer.allocUnsafeSlow(length);
      READ.copy(copy, 0, 0, length);
      return copy;
    }
    let block = blocks.get(socket);
    if (!block || block.end + length > BLOCK_BYTES) {
      block = { bytes: Buffer.allocUnsafeSlow(BLOCK_BYTES), end: 0 };
      blocks.set(socket, block);
    }
    const begin = block.end;
    block.end += READ.copy(block.bytes, begin, 0, length);
    return block.bytes.subarray(begin, block.end);
  }

  return {
    buffer: READ,
    /** `this` is the connection. Its stream gets no other data. */
    callback(this: Socket, length: number): boolean {
      return this.push(copied(this, length));
    },
  };
}
