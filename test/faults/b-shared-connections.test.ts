/** Requests of several projects follow each other on one connection to the upstream. None may get the response to another. */
import { expect } from 'chai';
import { METHODS } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { ask, chunk, head, LAST_CHUNK } from '../support/raw.js';

/**
 * An upstream that reads no bodies: it takes bytes after a head for the next request. Like a server that takes a while, it responds to each
 * request when the next one arrives or a moment has passed.
 */
class DeafToBodies {
  url = '';
  connections = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    this.#serve(socket);
  });

  #serve(socket: Socket): void {
    let bytes = '';
    let isFirst = true;
    const waiting: string[] = [];
    const answer = () => {
      const start = waiting.shift();
      if (start === undefined) return;
      const body = `answer to ${start}`;
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${start.startsWith('HEAD') ? '' : body}`);
    };
    socket.on('data', (piece: Buffer) => {
      bytes += piece.toString('latin1');
      for (let end = bytes.indexOf('\r\n\r\n'); end !== -1; end = bytes.indexOf('\r\n\r\n')) {
        // The request comes after the length of a chunk. Some servers skip empty lines and garbage before a request.
        const request = bytes.slice(0, end).split('\r\n');
        const start = request.find((line) => / HTTP\/1\.1$/.test(line));
        if (start !== undefined) waiting.push(start);
        bytes = bytes.slice(end + 4);
      }
      // The response to a request that arrived together with the first is sent later, to the next request.
      if (isFirst || waiting.length > 1) answer();
      else setTimeout(answer, 20);
      isFirst = false;
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

describe('B: an upstream that does not read bodies', () => {
  let upstream: DeafToBodies;
  let daemon: TestDaemon;
  let attacker: string;
  let victim: string;
  before(async () => {
    upstream = await new DeafToBodies().listen();
    daemon = await startDaemon({ upstream: upstream.url, env: { UPSTREAM_CONNECTIONS: '1' } });
    const tokenOf = async () => (await daemon.createToken((await daemon.createProject()).id)).token;
    attacker = await tokenOf();
    victim = await tokenOf();
  });
  after(async () => {
    await daemon.stop();
    upstream.close();
  });

  const SMUGGLED = head('GET /v1/smuggled', null);
  // POST, PUT and PATCH have bodies that every server reads. OPTIONS, CONNECT and TRACE are not forwarded.
  const methods = ['GET', 'HEAD', 'DELETE', 'QUERY', 'PROPFIND', 'PROPPATCH', 'REPORT', 'SEARCH', 'M-SEARCH', 'LOCK'];
  const FRAMINGS: [what: string, framed: (method: string) => string][] = [
    [
      'with a length',
      (method) => head(`${method} /v1/x`, attacker, { 'Content-Length': String(SMUGGLED.length) }) + SMUGGLED,
    ],
    [
      'in chunks',
      (method) => head(`${method} /v1/x`, attacker, { 'Transfer-Encoding': 'chunked' }) + chunk(SMUGGLED) + LAST_CHUNK,
    ],
  ];
  for (const method of methods) {
    for (const [what, framed] of FRAMINGS) {
      it(`B07 a request inside the body of ${method}, ${what}, does not get a response that another project receives`, async () => {
        const before = upstream.connections;
        const first = await ask(daemon.url, framed(method), method);
        if (!METHODS.includes(method)) return; // Older releases of Node do not know QUERY.
        expect(first.status).to.equal(200);
        for (let i = 0; i < 3; i++) {
          const answer = await ask(daemon.url, head(`GET /v1/mine/${i}`, victim));
          expect(answer.text).to.equal(`answer to GET /v1/mine/${i} HTTP/1.1`);
        }
        expect(upstream.connections, 'one was closed').to.be.at.most(before + 2);
      });
    }
  }

  it('the upstream connection is reused after requests without a body', async () => {
    await ask(daemon.url, head('GET /v1/a', victim));
    const before = upstream.connections;
    for (const method of ['DELETE', 'PROPFIND', 'GET']) {
      expect((await ask(daemon.url, head(`${method} /v1/a`, victim))).text).to.equal(
        `answer to ${method} /v1/a HTTP/1.1`,
      );
    }
    expect(upstream.connections).to.equal(before);
  });
});
