import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { ListenAddress } from '../../config/kinds.js';

/**
 * The name that a dispatcher goes by in its group. It is the same after a restart, so that what was pending is its own again, and no
 * other's: where one listens no other can on the same machine. With a port that the system chooses it is new each time.
 */
export function consumerName(listenAddress: ListenAddress): { name: string; isStable: boolean } {
  const host = hostname();
  const isStable = 'path' in listenAddress || listenAddress.port !== 0;
  if (!isStable) return { name: `${host}:${randomUUID()}`, isStable };
  const where = 'path' in listenAddress ? listenAddress.path : `${listenAddress.host}:${listenAddress.port}`;
  // Machines that were made from one image may have one name.
  const mark = createHash('sha256').update(`${machineId()}\n${host}\n${where}`).digest('hex').slice(0, 12);
  return { name: `${host}:${mark}`, isStable };
}

function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}
