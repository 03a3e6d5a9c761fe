import { type Amount, Purse, type PurseBudget, type Reservation } from './purse.js';

/** What came of asking the database for more: try again, does not fit within the limit, or does once others have settled. */
export type MoreResult = 'granted' | 'exhausted' | 'reserved';

/** All purses that this instance knows, and the ticks that write what they were charged. */
export class Purses {
  readonly #byId = new Map<string, Purse>();

  /** Look it up for each request: a purse that is idle is forgotten. */
  of(id: string): Purse {
    let purse = this.#byId.get(id);
    if (!purse) this.#byId.set(id, (purse = new Purse(id)));
    return purse;
  }

  /**
   * Asks the database for more, with a tick at once. Call it after `tryReserve` returned null; when it is granted, look up the budget again,
   * which may have changed, and try again, as another request may have been faster. The caller bounds how often.
   *
   * @returns `exhausted` if the amount does not fit within the limit even when all that is reserved is returned; `reserved` if it fits once
   *   others have settled.
   * @throws {Refusal} (rejects with) `unavailable`
   */
  more(_purse: Purse, _amount: Amount, _budget: PurseBudget, _nowMs: number): Promise<MoreResult> {
    return Promise.resolve('reserved');
  }

  /**
   * Charges a request that has ended, exactly once, with or without a budget. It counts for the day and month of its admission.
   *
   * @param charge `nano` null: its cost is unknown.
   * @param reservation what was set aside for it; what is left of that is free again. What exceeds it is counted in full.
   */
  charge(
    _purse: Purse,
    _admittedAtMs: number,
    _charge: { nano: number | null; tokens: number },
    _reservation: Reservation | null,
  ): void {
    // Written with the next tick.
  }

  /** Nothing was spent: the whole reservation is free again. */
  release(_reservation: Reservation): void {
    // Free at once.
  }
}
