import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { ListenAddress } from '../../config/kinds.js';

/**
 * Name of a dispatcher in its consumer group. It is the same after a restart, so that the dispatcher continues with its pending events. It is
 * unique, because only one dispatcher of a machine can listen on an address. With port 0 it is a new name each time.
 */
export function consumerName(listenAddress: ListenAddress): { name: string; isStable: boolean } {
  const host = hostname();
  const isStable = 'path' in listenAddress || listenAddress.port !== 0;
  if (!isStable) return { name: `${host}:${randomUUID()}`, isStable };
  const address = 'path' in listenAddress ? listenAddress.path : `${listenAddress.host}:${listenAddress.port}`;
  // Machines created from the same image may have the same host name.
  const digest = createHash('sha256').update(`${machineId()}\n${host}\n${address}`).digest('hex').slice(0, 12);
  return { name: `${host}:${digest}`, isStable };
}

function machineId(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim();
  } catch {
    return '';
  }
}
