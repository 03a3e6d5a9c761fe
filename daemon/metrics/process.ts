import { readdir } from 'node:fs/promises';
import { collectDefaultMetrics } from 'prom-client';
import type { Families } from './family.js';

const EXCLUDED = [
  // Lists of all open resources by kind: with ten thousand connections each takes milliseconds per scrape.
  'nodejs_active_resources',
  'nodejs_active_resources_total',
  'nodejs_active_handles',
  'nodejs_active_handles_total',
  'nodejs_active_requests',
  'nodejs_active_requests_total',
  'process_open_fds',
  // Readers of metrics need not learn which vulnerabilities a version may have.
  'nodejs_version_info',
];

/** Process metrics: CPU, memory, garbage collection, event loop lag, file descriptors. */
export function addProcess(families: Families): void {
  const { registry } = families;
  collectDefaultMetrics({ register: registry });
  for (const name of EXCLUDED) registry.removeSingleMetric(name);
  // Read asynchronously. prom-client's own version blocks the event loop.
  families.gauge('process_open_fds', 'Number of open file descriptors.', async () => {
    return (await readdir('/proc/self/fd')).length - 1;
  });
}
