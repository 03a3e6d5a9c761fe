import type { Migration } from './migration.js';
import { time } from './schema.js';

/** What instances that share a database must know about each other. 0 means never. */
export const severalInstances: Migration = {
  name: '0005-several-instances',
  minBuild: '0.1.0',
  async up({ schema }) {
    // The row of a dead instance stays for a while. If the instance returns, the row shows what happened to its last tick.
    await schema.addColumn('instances', 'buried_at', { ...time, defaultValue: 0 });
    // When another instance last requested the units of a lease.
    await schema.addColumn('leases', 'wanted_at', { ...time, defaultValue: 0 });
    await schema.addIndex('changes', ['changed_at'], 'changes_time');
  },
};
