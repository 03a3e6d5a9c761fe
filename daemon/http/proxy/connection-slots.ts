import type { Clock } from '../../core/ports.js';
import { unavailable } from '../../core/refusal.js';
import { ClientGone } from '../body.js';
import type { LiveTimeouts } from './upstream-connection.js';

/** The connections that one origin may have at the same time. Requests above that number wait in turn, for as long as a connection may take. */
export class ConnectionSlots {
  readonly #count: number;
  readonly #clock: Clock;
  readonly #live: LiveTimeouts;
  #free: number;
  readonly #waiting: Slot[] = [];

  constructor(count: number, clock: Clock, live: LiveTimeouts) {
    this.#count = count;
    this.#free = count;
    this.#clock = clock;
    this.#live = live;
  }

  /** Whether no slot is held. */
  get areAllFree(): boolean {
    return this.#free === this.#count;
  }

  /** Takes a slot, or a place in the queue for one (`Slot.granted`). The caller must see to it that the slot is released. */
  reserve(): Slot {
    const slot = new Slot(this);
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      this.#waiting.push(slot);
      slot.wait(this.#clock, this.#live.current.upstreamConnectTimeoutMs);
    }
    return slot;
  }

  /** A slot was given back. */
  returned(): void {
    const next = this.#waiting.shift();
    if (next) next.grant();
    else this.#free += 1;
  }

  /** A slot that was not granted yet is no longer wanted. */
  left(slot: Slot): void {
    this.#waiting.splice(this.#waiting.indexOf(slot), 1);
  }
}

/** The right of one request or WebSocket to a connection. */
export class Slot {
  readonly #slots: Pick<ConnectionSlots, 'returned' | 'left'>;
  /**
   * Set if no slot was free: resolves when this one is held. @throws {Refusal} (rejects with) `unavailable` if none became free in time,
   * or with `ClientGone` if it was released before.
   */
  granted: Promise<void> | null = null;
  /** Ends the wait. */
  #settle: ((failure: Error | null) => void) | null = null;
  #isOver = false;

  constructor(slots: Pick<ConnectionSlots, 'returned' | 'left'>) {
    this.#slots = slots;
  }

  wait(clock: Clock, limitMs: number): void {
    this.granted = new Promise((resolve, reject) => {
      const cancel = clock.after(limitMs, () => {
        this.#leave(unavailable());
      });
      this.#settle = (failure) => {
        this.#settle = null;
        cancel();
        if (failure) reject(failure);
        else resolve();
      };
    });
  }

  grant(): void {
    this.#settle?.(null);
  }

  #leave(why: Error): void {
    this.#isOver = true;
    this.#slots.left(this);
    this.#settle?.(why);
  }

  /** Gives the slot back, or leaves the queue. Does nothing the second time. */
  release(): void {
    if (this.#isOver) return;
    if (this.#settle) {
      this.#leave(new ClientGone());
    } else {
      this.#isOver = true;
      this.#slots.returned();
    }
  }
}
