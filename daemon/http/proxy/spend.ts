import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import { ClientGone } from '../body.js';
import type { Forwarder, Place } from './forward.js';

/** A request for which a use is to be spent. */
export interface Spender {
  /** In the same turn in which its use was drawn. Its connection is its own from here on: it sees to it that it is given back. */
  forward(): void;
  /** Once the request is over this does nothing, and for `ClientGone` there is nobody to be told. */
  refuse(error: unknown): void;
  /** Answered, refused or cut, or its client is gone: nothing is spent on it any more. */
  isOver(): boolean;
}

/** What a request needs to be forwarded, which requests and handshakes share: first a connection to the upstream, then one use. */
export class Spending {
  readonly #spender: Spender;
  readonly #admission: Pick<Admission, 'draw'>;
  readonly #connections: Pick<Forwarder, 'reserve' | 'release'>;
  #place: Place | null = null;
  #holdsConnection = false;

  constructor(
    spender: Spender,
    admission: Pick<Admission, 'draw'>,
    connections: Pick<Forwarder, 'reserve' | 'release'>,
  ) {
    this.#spender = spender;
    this.#admission = admission;
    this.#connections = connections;
  }

  /** Goes on to the spender's `forward` or `refuse`. It never rejects. */
  async begin(pass: Pass): Promise<void> {
    const spender = this.#spender;
    try {
      this.#place = this.#connections.reserve() ?? null;
      if (this.#place) await this.#place.reached;
      this.#holdsConnection = true;
      // Gone or refused while its body arrived or it waited for a connection.
      if (spender.isOver()) throw new ClientGone();
      // Without an `await` when there is nothing to wait for: then nothing comes between the checks and the forwarding.
      const waitingForUnit = this.#admission.draw(pass);
      if (waitingForUnit) await waitingForUnit;
      if (pass.ended) throw pass.ended;
      if (spender.isOver()) throw new ClientGone();
      this.#holdsConnection = false;
      spender.forward();
    } catch (error) {
      this.end();
      spender.refuse(error);
    }
  }

  /** Nobody needs the connection any more, or a place in the queue for one. */
  end(): void {
    this.#place?.leave();
    if (this.#holdsConnection) this.#connections.release();
    this.#holdsConnection = false;
  }
}
