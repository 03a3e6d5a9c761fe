/**
 * Messages between the primary and a worker: one-way messages, and calls with a reply. All messages of one turn of the event loop travel together,
 * and arrive in the order in which they were sent.
 */
import { StoreUnavailable } from '../../core/ports.js';

/** The messages that one side accepts. */
export type Protocol = Record<string, { argument: unknown; result: unknown }>;

const MESSAGE = 0;
const CALL = 1;
const REPLY = 2;
const FAILURE = 3;
type Message = [typeof MESSAGE | typeof CALL | typeof REPLY | typeof FAILURE, number, string, unknown];

/** Transport of batches, in order. A batch can be cloned structurally. */
export interface Port {
  post(batch: unknown): void;
  onBatch(listener: (batch: unknown) => void): void;
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
  handle<Name extends keyof Ours & string>(
    name: Name,
    handler: (argument: Ours[Name]['argument']) => Ours[Name]['result'] | Promise<Ours[Name]['result']>,
  ): void {
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
    return new Promise<unknown>((resolve, reject) => {
      if (this.#isClosed) {
        reject(ended());
        return;
      }
      this.#lastCall += 1;
      this.#pending.set(this.#lastCall, { resolve, reject });
      this.#post([CALL, this.#lastCall, name, argument]);
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
    for (const { reject } of this.#pending.values()) reject(ended());
    this.#pending.clear();
  }

  #post(message: Message): void {
    if (this.#isClosed) return;
    this.#outgoing.push(message);
    if (this.#outgoing.length === 1) setImmediate(this.#flushLater);
  }

  readonly #flushLater = (): void => {
    this.flush();
  };

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
