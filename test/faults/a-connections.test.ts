import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { chunk, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, REQUEST_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const SLOWLY_MS = 5;

describe('A: connections', () => {
  const { stage, it } = staged();

  const old = (request: string) => request.replace('HTTP/1.1', 'HTTP/1.0');

  describe('of HTTP/1.0', () => {
    const inChunks = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('all ')}${chunk('of it')}${LAST_CHUNK}`;

    for (const [what, fields] of Object.entries({
      'without a Connection header': {},
      'with Connection: keep-alive': { Connection: 'keep-alive' },
      'with TE: chunked': { TE: 'chunked', Connection: 'TE, keep-alive' },
    })) {
      it(`A15 HTTP/1.0 clients ${what} get a response of unknown length unchunked, and the connection closes after it`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(inChunks);
        };
        const client = await stage.client(old(stage.get(fields)));
        await client.closed;
        const answer = await client.response();
        expect(answer).to.include({ status: 200, text: 'all of it' });
        expect(answer.header('transfer-encoding')).to.equal(undefined);
        expect(answer.header('connection')).to.equal('close');
        expect(client.wasReset).to.equal(false);
      });
    }

    it('A15 HTTP/1.0 clients need no Host header, and their connections close after a probe too', async () => {
      const client = await stage.client(old(head('GET /live', null, { Host: [], Connection: 'keep-alive' })));
      expect((await client.response()).text).to.equal('{"status":"ok"}');
      await client.closed;
    });
  });

  describe('that make the daemon wait', () => {
    /** Node measures this time itself. A test cannot move it, but can make it short. */
    async function withShortTimeout(run: () => Promise<void>): Promise<void> {
      const { server } = stage.daemon.daemon;
      expect(server.headersTimeout, 'default settings').to.equal(10_000);
      server.headersTimeout = 50;
      try {
        await run();
      } finally {
        server.headersTimeout = 10_000;
      }
    }

    async function expectCutOff(client: RawClient): Promise<void> {
      expectRefusal(await client.response(), REQUEST_TIMEOUT);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
    }

    it('A19 a head that arrives byte by byte gets 408, and the connection closes although the client keeps sending', () =>
      withShortTimeout(async () => {
        const client = await stage.client('GET /v1/models HTTP/1.1\r\nX-Slow: ');
        while (client.pending.length === 0) {
          client.send('x');
          await sleep(SLOWLY_MS); // Not as fast as possible: the head would become too large before it times out.
        }
        await expectCutOff(client);
        await stage.expectNothingSpent();
      }));

    it('A19 the head of a second request on the connection has the same limit', () =>
      withShortTimeout(async () => {
        const client = await stage.client(stage.get());
        expect((await client.response()).status).to.equal(200);
        client.send('GET /v1/mod');
        await expectCutOff(client);
        expect(await stage.uses()).to.equal(1);
      }));

    it('A20 a connection on which nothing is sent gets 408 and closes', () =>
      withShortTimeout(async () => {
        await expectCutOff(await stage.client());
      }));

    it('A37 a megabyte of empty lines gets 408, and the connection closes', () =>
      withShortTimeout(async () => {
        await expectCutOff(await stage.client('\r\n'.repeat(500_000)));
        await stage.expectNothingSpent();
      }));

    it('A36 a client that half-closes its connection counts as disconnected: it gets nothing more, and its upstream request is aborted', async () => {
      stage.upstream.script = () => undefined;
      const client = await stage.client(stage.get());
      const exchange = await stage.upstream.only();
      client.socket.end();
      await client.closed;
      await exchange.closed();
      expect(client.pending.toString()).to.equal('');
      expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed' });
    });
  });
});

describe('A: more connections than MAX_CONNECTIONS', () => {
  const { stage, it } = staged({ env: { MAX_CONNECTIONS: '20' } });

  const isBusy = ({ target }: Exchange) => target === '/v1/busy';
  const busyUpstream = (exchange: Exchange) => {
    if (!isBusy(exchange)) exchange.respond();
  };

  it('A22 idle connections do not keep new clients out, and connections that wait for a response are not closed', async () => {
    stage.upstream.script = busyUpstream;
    const busy = await stage.client(stage.get({}, '/v1/busy'));
    const exchange = await stage.upstream.only();
    for (let i = 0; i < 60; i++) {
      const idle = await stage.client(stage.get());
      expect((await idle.response()).status, `client ${i}`).to.equal(200);
      expect(stage.connections, 'connections').to.be.at.most(20);
    }
    exchange.respond(200, '', 'busy');
    expect((await busy.response()).text).to.equal('busy');
  });

  it('A22 if all connections wait for a response, one more is closed at once; it is served as soon as one of them has its response', async () => {
    stage.upstream.script = busyUpstream;
    const clients: RawClient[] = [];
    await eventually('the extra one is closed', async () => {
      clients.push(await stage.client(stage.get({}, '/v1/busy')));
      return clients.some(({ isClosed }) => isClosed);
    });
    expect(stage.connections, 'connections').to.be.at.most(20);
    const { exchanges } = stage.upstream;
    await eventually(
      'the others are upstream',
      () => exchanges.length === clients.filter(({ isClosed }) => !isClosed).length,
    );
    exchanges[0]?.respond();
    await eventually('one more is served', async () => {
      const client = await stage.client(stage.get());
      return (await client.response().catch(() => null))?.status === 200;
    });
  });
});
