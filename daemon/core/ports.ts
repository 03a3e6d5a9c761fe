/** What the core asks of the outside. Each port is implemented in daemon/store, daemon/process/log.ts or daemon/compose/. */
export * from './ports/common.js';
export * from './ports/counting.js';
export * from './ports/neighbours.js';
export * from './ports/records.js';
export * from './ports/usage.js';
export * from './ports/cache.js';
export * from './ports/rates.js';
export * from './ports/events.js';
