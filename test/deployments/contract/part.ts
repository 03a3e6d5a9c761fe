import type { Furnished } from '../furnished.js';
import type { System } from '../system.js';

/** What a part of the contract is given: the running system, and what is in it. */
export interface Given {
  readonly system: System;
  readonly furnished: Furnished;
}
