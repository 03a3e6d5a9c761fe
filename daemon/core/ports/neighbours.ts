/** What the instances that share a database ask it, and tell each other. */
import type { CommittedChange } from './records.js';

/** How things stand between the instances that share a database. */
export interface Standing {
  /** The number of the last record of a change. */
  seq: number;
  /** Tokens of which this instance holds units that another one asks for. */
  wanted: readonly string[];
}

/** What instances that share a database ask it, and tell it, all the time. */
export interface Neighbourhood {
  standing(instanceId: string, nowMs: number): Promise<Standing>;
  /** What others are to hear of, behind the record with this number, in order. */
  changesAfter(seq: number, limit: number): Promise<CommittedChange[]>;
  /** Ends the instances that were not heard of for so long: what they held counts as used. @returns how many. */
  buryDead(instanceId: string, nowMs: number): Promise<number>;
  /** Removes changes that all have long heard of. */
  forgetChangesBefore(timeMs: number): Promise<void>;
}

/** A word from one instance to the others, which need not arrive: what it says is in the database as well. */
export type Poke =
  | { kind: 'changed'; change: CommittedChange }
  /** Whoever holds units of this token is asked for them. */
  | { kind: 'wanted'; tokenId: string }
  /** Some may have been missed. */
  | { kind: 'arrived' };

export interface Pokes {
  /** Never waits, never throws. */
  send(poke: Poke): void;
  onPoke(listener: (poke: Poke) => void): void;
}
