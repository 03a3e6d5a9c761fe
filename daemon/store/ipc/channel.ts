/**
 * Messages between the primary and a worker: one-way messages, and calls with a reply. All messages of one turn of the event loop travel together,
 * and arrive in the order in which they were sent.
 *
 * **Large calls** have a lane of their own: a few of them at a time are on their way, and the others wait on this side. So a message that others wait
 * for, such as the confirmation of a revocation, never waits for the bodies of all requests.
 */
import { StoreUnavailable } from '../../core/ports.js';

/** The messages that one side accepts. */
export type Protocol = Record<string, { argument: unknown; result: unknown }>;

type Handler<Kind extends Protocol[string]> = (
  argument: Kind['argument'],
) => Kind['result'] extends undefined ? void | Promise<void> : Kind['result'] | Promise<Kind['result']>;

const MESSAGE = 0;
const CALL = 1;
const REPLY = 2;
const FAILURE = 3;
/** How many large calls the operating system may have before the other side has read them. */
const MAX_LARGE = 8;
type Message = [typeof MESSAGE | typeof CALL | typeof REPLY | typeof FAILURE, number, string, unknown];

/** Transport of batches, in order. A batch can be cloned structurally. */
export interface Port {
  /** @param onTaken called when the operating system has taken all of it, or it cannot be sent. */
  post(batch: unknown, onTaken?: () => void): void;
  onBatch(listener: (batch: unknown) => void): void;
}

/** @see Channel.callLarge */
export interface LargeCall {
  reply: Promise<unknown>;
  withdraw: () => void;
}

interface Pending {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

/** @typeParam Theirs what the other side accepts. @typeParam Ours what this side accepts. */
export class Channel<Theirs extends Protocol, Ours extends Protocol> {
  readonly #port: Port;
  readonly #handlers = new Map<string, (argument: unknown) => unknown>();
  readonly #pending = new Map<number, Pending>();
  #outgoing: Message[] = [];
  readonly #large = new Set<Message>();
  #largeOnTheirWay = 0;
  #isFlushing = false;
  #lastCall = 0;
  #isClosed = false;
  #hasBegun = false;

  constructor(port: Port) {
    this.#port = port;
    port.onBatch((batch) => {
      this.#hasBegun = true;
      for (const message of batch as Message[]) this.#receive(message);
    });
  }

  /** Whether the other side has its handlers. Until then it gets nothing, and knows nothing that could be out of date. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Sends an empty batch, which tells the other side that this one has its handlers. */
  begin(): void {
    this.#port.post([]);
  }

  /** Handles a kind of message. Messages without a handler are ignored, and calls without one return undefined. */
  handle<Name extends keyof Ours & string>(name: Name, handler: Handler<Ours[Name]>): void {
    this.#handlers.set(name, handler);
  }

  /** Sends a message without a reply. Does not throw. */
  send<Name extends keyof Theirs & string>(name: Name, argument: Theirs[Name]['argument']): void {
    this.#post([MESSAGE, 0, name, argument]);
  }

  /** @returns undefined if the other side does not handle it yet. @throws {StoreUnavailable} if it has ended, or failed. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    argument: Theirs[Name]['argument'],
  ): Promise<Theirs[Name]['result'] | undefined> {
    return this.#call(name, argument, (message) => {
      this.#post(message);
    });
  }

  /**
   * The same for an argument of many bytes. Messages that are sent later may arrive earlier.
   *
   * @returns its reply, and a function that withdraws it: if it is not on its way yet, it is not made, and its reply stays pending.
   */
  callLarge<Name extends keyof Theirs & string>(name: Name, argument: Theirs[Name]['argument']): LargeCall {
    let withdraw: () => void = () => undefined;
    const reply = this.#call(name, argument, (message) => {
      withdraw = () => {
        if (this.#large.delete(message)) this.#pending.delete(message[1]);
      };
      this.#large.add(message);
      this.#scheduleFlush();
    });
    return { reply, withdraw };
  }

  #call(name: string, argument: unknown, post: (message: Message) => void): Promise<unknown> {
    return new Promise<unknown>((resolve, reject) => {
      if (this.#isClosed) {
        reject(ended());
        return;
      }
      this.#lastCall += 1;
      this.#pending.set(this.#lastCall, { resolve, reject });
      post([CALL, this.#lastCall, name, argument]);
    });
  }

  /** Sends what waits now, not at the end of the turn. */
  flush(): void {
    const batch = this.#outgoing;
    if (batch.length === 0 || this.#isClosed) return;
    this.#outgoing = [];
    this.#port.post(batch);
  }

  /** Call when the other side has ended. */
  close(): void {
    this.#isClosed = true;
    this.#outgoing = [];
    this.#large.clear();
    for (const { reject } of this.#pending.values()) reject(ended());
    this.#pending.clear();
  }

  #post(message: Message): void {
    if (this.#isClosed) return;
    this.#outgoing.push(message);
    this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.flush();
      this.#sendLarge();
    });
  }

  /** After all that was sent before them. Each is a batch of its own: what is made of the bytes of one does not keep those of others. */
  #sendLarge(): void {
    for (const message of this.#large) {
      if (this.#largeOnTheirWay >= MAX_LARGE || this.#isClosed) return;
      this.#large.delete(message);
      this.#largeOnTheirWay += 1;
      this.#port.post([message], () => {
        this.#largeOnTheirWay -= 1;
        if (this.#large.size > 0) this.#scheduleFlush();
      });
    }
  }

  #receive([kind, number, name, value]: Message): void {
    if (kind === REPLY || kind === FAILURE) {
      const pending = this.#pending.get(number);
      this.#pending.delete(number);
      if (kind === REPLY) pending?.resolve(value);
      else pending?.reject(new StoreUnavailable(String(value)));
      return;
    }
    const result = this.#handlers.get(name)?.(value);
    if (kind === MESSAGE) return;
    if (!(result instanceof Promise)) {
      this.#post([REPLY, number, '', result]);
      return;
    }
    result.then(
      (it: unknown) => {
        this.#post([REPLY, number, '', it]);
      },
      (error: unknown) => {
        this.#post([FAILURE, number, '', error instanceof Error ? error.message : 'failed']);
      },
    );
  }
}

const ended = () => new StoreUnavailable('the other process of this daemon has ended');
