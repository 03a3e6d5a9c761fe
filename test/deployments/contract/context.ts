import type { TestData } from '../test-data.js';
import type { System } from '../system.js';

/** What each part of the contract gets: the running system and its contents. */
export interface ContractContext {
  readonly system: System;
  readonly testData: TestData;
}
