/** Ports of the core: the interfaces it depends on. They are implemented in daemon/store, daemon/process/log.ts and daemon/compose/. */
export * from './ports/common.js';
export * from './ports/counting.js';
export * from './ports/cluster.js';
export * from './ports/access.js';
export * from './ports/trusts.js';
export * from './ports/records.js';
export * from './ports/usage.js';
export * from './ports/cache.js';
export * from './ports/rates.js';
export * from './ports/limits.js';
export * from './ports/events.js';
export * from './ports/incidents.js';
export * from './ports/top.js';
