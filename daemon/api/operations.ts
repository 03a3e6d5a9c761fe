/**
 * The operations of the management API, declared once. The routes (daemon/http/manage/routes.ts), the OpenAPI description
 * (daemon/http/manage/openapi.ts) and the response checks of the tests are derived from this list.
 */
import type { Declared, Exemplified } from './operation.js';
import { projects } from './operations/projects.js';
import { tokens } from './operations/tokens.js';
import { usage } from './operations/usage.js';
import { prices } from './operations/prices.js';
import { top } from './operations/top.js';
import { incidents } from './operations/incidents.js';
import { access } from './operations/access.js';
import { audit } from './operations/audit.js';
import { batches } from './operations/batches.js';
import { events } from './operations/events.js';
import { cache } from './operations/cache.js';
import { instance } from './operations/instance.js';
import { sessions } from './operations/sessions.js';

const all = {
  ...projects,
  ...tokens,
  ...usage,
  ...top,
  ...prices,
  ...incidents,
  ...audit,
  ...batches,
  ...events,
  ...cache,
  ...instance,
  ...access,
  ...sessions,
};

// A missing operation does not compile, nor does an example that does not match its schema.
export const operations = all satisfies Declared & Exemplified<typeof all>;

export type Operations = typeof operations;
