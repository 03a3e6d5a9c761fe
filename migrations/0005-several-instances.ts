import type { Migration } from './migration.js';
import { time } from './schema.js';

/** What instances that share a database must know of each other. 0 stands for never. */
export const severalInstances: Migration = {
  name: '0005-several-instances',
  minBuild: '0.1.0',
  async up({ schema }) {
    // A dead one's row is kept for a while: should it come back, it learns from it what became of its last tick.
    await schema.addColumn('instances', 'buried_at', { ...time, defaultValue: 0 });
    // When another instance last asked for the units of a lease.
    await schema.addColumn('leases', 'wanted_at', { ...time, defaultValue: 0 });
    await schema.addIndex('changes', ['changed_at'], 'changes_time');
  },
};
