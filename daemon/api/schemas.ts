/**
 * The wire shapes of the management API, declared once: what a request may carry and what an answer
 * does carry. Types (contract.ts), validation and the OpenAPI description (both daemon/http) come from here.
 * daemon/api/schemas/fields.ts says which texts a field has.
 */
export * from './schemas/audit.js';
export * from './schemas/cache.js';
export * from './schemas/events.js';
export * from './schemas/problem.js';
export * from './schemas/projects.js';
export * from './schemas/sessions.js';
export * from './schemas/status.js';
export * from './schemas/tokens.js';
export * from './schemas/usage.js';
