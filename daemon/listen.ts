import { chmodSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import type { ListenAddress } from '../config/kinds.js';

/** Listens there; a unix socket is for its owner and group. */
export async function listen(server: Server, address: ListenAddress): Promise<void> {
  if ('path' in address) await removeStaleSocket(address.path);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
  if ('path' in address) chmodSync(address.path, 0o660);
}

/** Where it listens: with port 0, the one it was given. */
export function addressOf(server: Server): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return address;
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

/** A socket file outlives a killed daemon. One that nobody answers on is in the way of nobody else. */
function removeStaleSocket(path: string): Promise<void> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(); // Somebody is there: listening will say so.
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') unlinkSync(path);
      resolve();
    });
  });
}
