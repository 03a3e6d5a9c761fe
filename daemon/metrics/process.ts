import { readdir } from 'node:fs/promises';
import { collectDefaultMetrics } from 'prom-client';
import type { Families } from './family.js';

/** Lists of all that is open, by kind: with ten thousand connections they take milliseconds each time. */
const GROWS_WITH_CONNECTIONS = [
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'process_open_fds',
];

/** What this process takes: processor, memory, garbage collection, lag of the event loop, file descriptors. */
export function addProcess(families: Families): void {
  const { registry } = families;
  collectDefaultMetrics({ register: registry });
  for (const name of GROWS_WITH_CONNECTIONS) registry.removeSingleMetric(name);
  // Read beside the event loop; its own list is one of them.
  families.gauge('process_open_fds', 'Number of open file descriptors.', async () => {
    return (await readdir('/proc/self/fd')).length - 1;
  });
}
