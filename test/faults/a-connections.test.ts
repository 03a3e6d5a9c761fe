import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { chunk, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, REQUEST_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/stage.js';
import type { Exchange } from './support/upstream.js';

const SLOWLY_MS = 5;

describe('A: connections', () => {
  const { stage, it } = staged();

  const old = (request: string) => request.replace('HTTP/1.1', 'HTTP/1.0');

  describe('of HTTP/1.0', () => {
    const inChunks = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('all ')}${chunk('of it')}${LAST_CHUNK}`;

    for (const [what, fields] of Object.entries({
      'that close': {},
      'that would stay': { Connection: 'keep-alive' },
      'that claim to know chunks': { TE: 'chunked', Connection: 'TE, keep-alive' },
    })) {
      it(`A15 ${what} get an answer without a length as it is, and its end is theirs`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(inChunks);
        };
        const client = await stage.client(old(stage.get(fields)));
        await client.closed;
        const answer = await client.answer();
        expect(answer).to.include({ status: 200, text: 'all of it' });
        expect(answer.header('transfer-encoding')).to.equal(undefined);
        expect(answer.header('connection')).to.equal('close');
        expect(client.wasReset).to.equal(false);
      });
    }

    it('A15 need no Host, and are closed behind a probe too', async () => {
      const client = await stage.client(old(head('GET /live', null, { Host: [], Connection: 'keep-alive' })));
      expect((await client.answer()).text).to.equal('{"status":"ok"}');
      await client.closed;
    });
  });

  describe('that keep the daemon waiting', () => {
    /** Node keeps this time itself: it cannot be moved, but it can be made short. */
    async function withShortTimeout(run: () => Promise<void>): Promise<void> {
      const { server } = stage.daemon.daemon;
      expect(server.headersTimeout, 'as shipped').to.equal(10_000);
      server.headersTimeout = 50;
      try {
        await run();
      } finally {
        server.headersTimeout = 10_000;
      }
    }

    async function expectCutOff(client: RawClient): Promise<void> {
      expectRefusal(await client.answer(), REQUEST_TIMEOUT);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
    }

    it('A19 with a head that comes byte by byte get 408 and are closed, whatever they go on sending', () =>
      withShortTimeout(async () => {
        const client = await stage.client('GET /v1/models HTTP/1.1\r\nX-Slow: ');
        while (client.pending.length === 0) {
          client.send('x');
          await sleep(SLOWLY_MS); // Not as fast as it goes: that would be too large a head before it is too late.
        }
        await expectCutOff(client);
        await stage.expectNothingSpent();
      }));

    it('A19 with the head of their second request too', () =>
      withShortTimeout(async () => {
        const client = await stage.client(stage.get());
        expect((await client.answer()).status).to.equal(200);
        client.send('GET /v1/mod');
        await expectCutOff(client);
        expect(await stage.uses()).to.equal(1);
      }));

    it('A20 and send nothing get 408 and are closed', () =>
      withShortTimeout(async () => {
        await expectCutOff(await stage.client());
      }));

    it('A37 with a megabyte of empty lines get 408 and are closed', () =>
      withShortTimeout(async () => {
        await expectCutOff(await stage.client('\r\n'.repeat(500_000)));
        await stage.expectNothingSpent();
      }));

    it('A36 and have closed their side are taken to have left: nothing more is sent, the upstream request is aborted', async () => {
      stage.upstream.script = () => undefined;
      const client = await stage.client(stage.get());
      const exchange = await stage.upstream.only();
      client.socket.end();
      await client.closed;
      await exchange.closed();
      expect(client.pending.toString()).to.equal('');
      expect(await stage.onlyEnd()).to.include({ outcome: 'client_closed' });
    });
  });
});

describe('A: more connections than there may be', () => {
  const { stage, it } = staged({ env: { MAX_CONNECTIONS: '20' } });

  const isBusy = ({ target }: Exchange) => target === '/v1/busy';
  const busyUpstream = (exchange: Exchange) => {
    if (!isBusy(exchange)) exchange.answer();
  };

  it('A22 who only holds connections keeps nobody out, and who waits for an answer is left alone', async () => {
    stage.upstream.script = busyUpstream;
    const busy = await stage.client(stage.get({}, '/v1/busy'));
    const exchange = await stage.upstream.only();
    for (let i = 0; i < 60; i++) {
      const idle = await stage.client(stage.get());
      expect((await idle.answer()).status, `client ${i}`).to.equal(200);
      expect(stage.connections, 'connections').to.be.at.most(20);
    }
    exchange.answer(200, '', 'busy');
    expect((await busy.answer()).text).to.equal('busy');
  });

  it('A22 where all wait for an answer, one too many is turned away, and served as soon as one has it', async () => {
    stage.upstream.script = busyUpstream;
    const clients: RawClient[] = [];
    await eventually('one is turned away', async () => {
      clients.push(await stage.client(stage.get({}, '/v1/busy')));
      return clients.some(({ isClosed }) => isClosed);
    });
    expect(stage.connections, 'connections').to.be.at.most(20);
    const { exchanges } = stage.upstream;
    await eventually(
      'those that were not are upstream',
      () => exchanges.length === clients.filter(({ isClosed }) => !isClosed).length,
    );
    exchanges[0]?.answer();
    await eventually('one more is served', async () => {
      const client = await stage.client(stage.get());
      return (await client.answer().catch(() => null))?.status === 200;
    });
  });
});
