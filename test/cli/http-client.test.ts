import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { fetchWithHttp } from '../../cli/connection/http-client.js';
import { eventually } from '../support/eventually.js';

describe('the HTTP client of the command line', () => {
  it('closes the connection of a response that nobody reads, so that the process can end', async () => {
    const server = createServer((_req, res) => {
      res.write('x'.repeat(45_000)); // In chunks: its length is not known.
      res.end();
    });
    server.keepAliveTimeout = 60_000; // The server does not close it.
    const sockets: Socket[] = [];
    server.on('connection', (socket) => sockets.push(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const controller = new AbortController();
    const headers = { accept: 'text/event-stream' };
    await fetchWithHttp()(url, { method: 'GET', headers, redirect: 'error', signal: controller.signal });
    await new Promise((resolve) => setTimeout(resolve, 20)); // Until all of it has arrived.
    controller.abort();
    await eventually('the connection is closed', () => sockets.every(({ destroyed }) => destroyed));
    server.close();
    server.closeAllConnections();
  });
});
