import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import type { ListenAddress } from '../../config/kinds.js';

/**
 * Listens on an address. A unix socket is accessible to its owner and group.
 *
 * @param isWorker whether other processes listen on it too: a socket that is there is theirs.
 */
export async function listen(server: Server, address: ListenAddress, isWorker = false): Promise<void> {
  if ('path' in address && !isWorker) await removeStaleSocket(address.path);
  await new Promise<void>((resolve, reject) => {
    // Both are removed, because this may be tried again with the same server.
    const onError = (error: Error) => {
      server.off('listening', onListening);
      reject(error);
    };
    const onListening = () => {
      server.off('error', onError);
      resolve();
    };
    server.once('error', onError).once('listening', onListening).listen(address);
  });
  if ('path' in address) chmodSync(address.path, 0o660);
}

/** Listens for a moment: fails if the address cannot be used. Removes a stale socket. @returns the address, as `addressOf`. */
export async function checkListening(address: ListenAddress): Promise<string | null> {
  const probe = createServer((socket) => socket.destroy());
  await listen(probe, address);
  const listened = addressOf(probe);
  await new Promise((resolve) => probe.close(resolve));
  return listened;
}

/** The address that the server listens on; for port 0, with the port that the system chose. */
export function addressOf(server: Server): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return address;
  return `${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

/**
 * Removes the socket that a killed daemon left behind. A socket that accepts connections stays, and so does any other file.
 *
 * @throws if the path exists and is not a socket.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) {
    const message = `${path} exists and is not a socket. Move it, or listen on another path.`;
    throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
  }
  if (!(await isInUse(path))) unlinkSync(path);
}

/** Whether a process listens on the socket. Also true if that is not certain: then listening fails with the reason. */
function isInUse(path: string): Promise<boolean> {
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
