import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port and prints the URL, for the process that started this one. */
export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    console.log(`listening http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
}
