/**
 * One request at a time for each connection: Node hands over at once all that it has read, and here each waits until
 * those before it are answered. A request that comes alone pays a glance for this.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type Serve = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => void;

// When as many wait, nothing more is read, so that memory stays bounded. Not from the first on: that a client
// has left is noticed by reading.
const READ_NO_FURTHER = 16;
// Beyond what one read (64 KiB) can hold of requests with a secret in them: who sends that is not after the answers.
const MOST_WAITING = 1_000;

export function inTurn(serve: Serve): Serve {
  const queues = new WeakMap<Socket, Queue>();

  const wait: Serve = (req, res, expectsContinue) => {
    const { socket } = req;
    const queue = queues.get(socket) ?? new Queue(socket);
    queues.set(socket, queue);
    queue.enter();
    // Node gives a response its connection when the one before has gone out.
    res.once('socket', () => {
      queue.leave();
      // Behind the end of the one before, which Node announces in the next tick as well.
      process.nextTick(() => {
        // Unless it was refused meanwhile: its rest could not be read.
        if (isOpen(socket) && !res.headersSent) serve(req, res, expectsContinue);
      });
    });
  };

  return (req, res, expectsContinue) => {
    if (!res.socket) wait(req, res, expectsContinue);
    else if (isOpen(res.socket)) serve(req, res, expectsContinue);
  };
}

/** Whether an answer could go out: not behind one that said it is the connection's last. */
const isOpen = (socket: Socket) => !socket.writableEnded && !socket.destroyed;

/** Those of a connection that wait. */
class Queue {
  #waiting = 0;
  #isReading = true;

  constructor(private readonly socket: Socket) {}

  enter(): void {
    this.#waiting += 1;
    if (this.#waiting > MOST_WAITING) this.socket.destroy();
    else if (this.#waiting >= READ_NO_FURTHER && this.#isReading) this.#stopReading();
  }

  leave(): void {
    this.#waiting -= 1;
    if (this.#waiting < READ_NO_FURTHER && !this.#isReading) this.#readOn();
  }

  #stopReading(): void {
    this.#isReading = false;
    // Node resumes a connection behind every message, and must not get to.
    this.socket.resume = () => this.socket;
    // Behind a resumption that is already under way.
    process.nextTick(() => {
      if (this.#isReading) return;
      this.socket.pause();
      // A body that nobody reads yet may have paused it before: then `pause` alone would not tell Node again.
      this.socket.emit('pause');
    });
  }

  #readOn(): void {
    this.#isReading = true;
    Reflect.deleteProperty(this.socket, 'resume');
    this.socket.resume();
  }
}
