import type { Schema } from './schema.js';

export interface Migration {
  /** Names sort in the order of application. A name never changes once released. */
  name: string;
  /** The oldest build that still works with the schema after this migration. */
  minBuild: string;
  /** Must be repeatable: it may have run before, completely or in part. */
  up(schema: Schema): Promise<void>;
}
