import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import type { ListenAddress } from '../../config/kinds.js';

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

/**
 * A socket outlives a killed daemon. One that nobody answers on is in the way of nobody else, and is removed; anything else
 * at that path belongs to somebody, and stays.
 *
 * @throws when it is no socket.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there) return;
  if (!there.isSocket()) {
    const message = `${path} exists and is not a socket, so it is left alone: move it away, or listen at another path`;
    throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
  }
  if (!(await isAnswered(path))) unlinkSync(path);
}

/** Whether somebody listens there, or may: then listening will say so. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED');
    });
  });
}
