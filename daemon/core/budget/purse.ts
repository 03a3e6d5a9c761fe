import type { BudgetMode, BudgetPeriod } from '../../api/vocabulary.js';

/** Whole numbers. */
export interface Amount {
  /** Nano-USD. */
  nano: number;
  /** Model tokens, of prompts and completions. */
  tokens: number;
}

/** A budget as purses compare with it. */
export interface PurseBudget {
  /** Null: not limited in this unit. */
  limitNano: number | null;
  limitTokens: number | null;
  period: BudgetPeriod;
  mode: BudgetMode;
}

/** An amount that is set aside for a request, until `Purses.charge` or `Purses.release`. Of a unit without a limit, nothing is. */
export interface Reservation extends Readonly<Amount> {
  readonly purse: Purse;
  /** Start of the period that it is of. */
  readonly fromMs: number;
}

/** What was spent in the current period of a budget, or in the whole life without one. */
export interface PurseState {
  /** Of all instances as of the last tick, and what is not written yet here. */
  used: Amount;
  /** For requests under way, and leased by instances for those to come. */
  reserved: Amount;
  /** Requests whose cost is unknown. */
  unpriced: number;
  /** Start of the period; 0 for the whole life. */
  sinceMs: number;
  /** When the period ends; null for the whole life. */
  endsMs: number | null;
}

/** The part that this instance has of the money of one token or project. It has the ID of that. */
export class Purse {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  /**
   * Sets an amount aside, of what is leased here. In mode `soft`, what is left if that is less and the database has no more.
   *
   * @returns null if not enough is leased here: ask `Purses.more`, and try again.
   */
  tryReserve(_amount: Amount, _budget: PurseBudget, _nowMs: number): Reservation | null {
    return null;
  }

  /** Not before its first tick: then the counts of the database are not known here. `Purses.more` runs one. */
  state(_budget: PurseBudget | null, _nowMs: number): PurseState {
    return { used: { nano: 0, tokens: 0 }, reserved: { nano: 0, tokens: 0 }, unpriced: 0, sinceMs: 0, endsMs: null };
  }
}
