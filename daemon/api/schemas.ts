/**
 * Schemas of the requests and responses of the management API. Types (contract.ts), validation and the OpenAPI description (both in
 * daemon/http) are derived from them. daemon/api/schemas/fields.ts explains the description texts.
 */
export * from './schemas/access.js';
export * from './schemas/audit.js';
export * from './schemas/batches.js';
export * from './schemas/cache.js';
export * from './schemas/events.js';
export * from './schemas/incidents.js';
export * from './schemas/problem.js';
export * from './schemas/projects.js';
export * from './schemas/sessions.js';
export * from './schemas/status.js';
export * from './schemas/tokens.js';
export * from './schemas/prices.js';
export * from './schemas/top.js';
export * from './schemas/usage.js';
