import type { Migration } from './migration.js';
import { time } from './schema.js';

/**
 * Who made a change, as reported by the front end, and on each revoked token when, by whom and why it was revoked. Everything can be
 * NULL: an older release does not write these columns, and continues to work.
 */
export const people: Migration = {
  name: '0007-people',
  minBuild: '0.1.0',
  async up({ schema }) {
    const text = (length: number) => ({ type: schema.text(length), allowNull: true });
    await schema.addColumn('audit', 'reported_user', text(100));
    await schema.addColumn('tokens', 'revoked_at', { ...time, allowNull: true });
    await schema.addColumn('tokens', 'revoked_by', text(100));
    await schema.addColumn('tokens', 'revoke_reason', text(200));
  },
};
