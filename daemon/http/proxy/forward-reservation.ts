import type { Pass } from '../../core/account.js';
import { ClientGone } from '../body.js';
import type { Forwarder, ConnectionWaiter } from './forwarder.js';

/** A request that needs a reservation before it can be forwarded. */
export interface ReservationOwner {
  /**
   * Called in the same turn in which the use was drawn. From here on the owner holds the connection, and must see to it that it is
   * returned.
   */
  forward(): void;
  /** Does nothing if the request has ended. For `ClientGone` there is no client left to respond to. */
  refuse(error: unknown): void;
  /** Whether the request was answered, refused or cut, or its client has disconnected; then nothing more is spent on it. */
  hasEnded(): boolean;
}

/** Draws a use. @returns a promise only if it has to wait. @throws {Refusal} (or rejects with) why there is none. */
type Draw = (pass: Pass) => undefined | Promise<void>;

/** Reserves what a request or a WebSocket handshake needs to be forwarded: first an upstream connection, then one use of the token. */
export class ForwardReservation {
  readonly #owner: ReservationOwner;
  readonly #draw: Draw;
  readonly #connections: Pick<Forwarder, 'reserve' | 'release'>;
  #waiter: ConnectionWaiter | null = null;
  #holdsConnection = false;

  constructor(spender: ReservationOwner, draw: Draw, connections: Pick<Forwarder, 'reserve' | 'release'>) {
    this.#owner = spender;
    this.#draw = draw;
    this.#connections = connections;
  }

  /** Calls the owner's `forward` or `refuse`. Never rejects. */
  async begin(pass: Pass): Promise<void> {
    const spender = this.#owner;
    try {
      this.#waiter = this.#connections.reserve() ?? null;
      if (this.#waiter) await this.#waiter.connected;
      this.#holdsConnection = true;
      // The client disconnected or the request was refused while its body arrived or it waited for a connection.
      if (spender.hasEnded()) throw new ClientGone();
      // No `await` if the unit is available at once: then nothing can happen between the checks and the forwarding.
      const waitingForUnit = this.#draw(pass);
      if (waitingForUnit) await waitingForUnit;
      if (pass.ended) throw pass.ended;
      if (spender.hasEnded()) throw new ClientGone();
      this.#holdsConnection = false;
      spender.forward();
    } catch (error) {
      this.end();
      spender.refuse(error);
    }
  }

  /** Leaves the queue or releases the connection, if one of them is still held. */
  end(): void {
    this.#waiter?.leave();
    if (this.#holdsConnection) this.#connections.release();
    this.#holdsConnection = false;
  }
}
