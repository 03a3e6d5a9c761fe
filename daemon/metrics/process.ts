import { readdir } from 'node:fs/promises';
import { collectDefaultMetrics } from 'prom-client';
import type { Families } from './family.js';

const LEFT_OUT = [
  // Lists of all that is open, by kind: with ten thousand connections they take milliseconds each time.
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'process_open_fds',
  // Whoever may read metrics need not learn what a version is open to.
  'nodejs_version_info',
];

/** What this process takes: processor, memory, garbage collection, lag of the event loop, file descriptors. */
export function addProcess(families: Families): void {
  const { registry } = families;
  collectDefaultMetrics({ register: registry });
  for (const name of LEFT_OUT) registry.removeSingleMetric(name);
  // Read beside the event loop; its own list is one of them.
  families.gauge('process_open_fds', 'Number of open file descriptors.', async () => {
    return (await readdir('/proc/self/fd')).length - 1;
  });
}
