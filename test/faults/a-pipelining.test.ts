import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { chunk, head, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, MALFORMED, UNAUTHORIZED, UPSTREAM_TIMEOUT } from '../support/refusals.js';
import { FaultFixture, staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1000;
const READ_BYTES = 64 * 1024;

describe('A: several requests on one connection', () => {
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: '60s' } });

  const get = (name: string, fields = {}) => stage.get(fields, `/v1/${name}`);
  const manage = (start: string) => head(start, MANAGEMENT_TOKEN);
  const targets = () => stage.upstream.exchanges.map(({ target }) => target);

  /** Responds to each request with its target. A response to `/v1/slow` waits until the test sends it. */
  function slowUpstream(): { reached: Promise<Exchange>; mostAtOnce: () => number } {
    let atOnce = 0;
    let mostAtOnce = 0;
    const reached = new Promise<Exchange>((resolve) => {
      stage.upstream.script = async (exchange) => {
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        await exchange.whole();
        // Long enough for any other request that would arrive at the same time.
        for (let i = 0; i < 10; i++) await turn();
        atOnce -= 1;
        if (exchange.target === '/v1/slow') resolve(exchange);
        else exchange.respond(200, '', exchange.target);
      };
    });
    return { reached, mostAtOnce: () => mostAtOnce };
  }

  /** The bodies of the next responses. */
  async function texts(client: RawClient, answers: number): Promise<string[]> {
    const all: string[] = [];
    while (all.length < answers) all.push((await client.response()).text);
    return all;
  }

  it('A16 three pipelined requests get their responses in order', async () => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(200, '', `${exchange.target} ${exchange.request.body.toString()}`);
    };
    const client = await stage.client(
      get('first') +
        stage.post('whole', {}, '/v1/second') +
        stage.post('', { 'Transfer-Encoding': 'chunked' }, '/v1/third') +
        chunk('in ') +
        chunk('chunks') +
        LAST_CHUNK,
    );
    expect(await texts(client, 3)).to.deep.equal(['/v1/first ', '/v1/second whole', '/v1/third in chunks']);
    expect(targets()).to.deep.equal(['/v1/first', '/v1/second', '/v1/third']);
  });

  describe('with 200 pipelined requests', () => {
    const names = Array.from({ length: 200 }, (_, index) => `number-${index}`);

    it('A17 one request at a time is in flight upstream, and the responses come in order', async () => {
      const { mostAtOnce } = slowUpstream();
      const client = await stage.client(names.map((name) => get(name)).join(''));
      expect(await texts(client, 200)).to.deep.equal(names.map((name) => `/v1/${name}`));
      expect(targets()).to.deep.equal(names.map((name) => `/v1/${name}`));
      expect(mostAtOnce(), 'upstream at once').to.equal(1);
      expect(await stage.uses()).to.equal(200);
    });

    it('A17 requests with bodies are served in order too, and are not read ahead without limit', async () => {
      const { reached } = slowUpstream();
      const body = 'x'.repeat(20_000);
      const client = await stage.client(
        get('slow') + names.map((name) => stage.post(body, {}, `/v1/${name}`)).join(''),
      );
      const slow = await reached;
      await expectReadingStops(client, 4 * body.length);
      slow.respond(200, '', '/v1/slow');
      expect(await texts(client, 201)).to.deep.equal(['/v1/slow', ...names.map((name) => `/v1/${name}`)]);
      expect(stage.upstream.exchanges.slice(1).every(({ request }) => request.body.toString() === body)).to.equal(true);
    });
  });

  /** Waits until the daemon stops reading from `client`, and checks that it has read little more than `bytes`. */
  async function expectReadingStops(client: RawClient, bytes = 0): Promise<void> {
    const socket = stage.serverSocket(client);
    let before = -1;
    await eventually('reading stops', async () => {
      for (let i = 0; i < 10; i++) await turn();
      const hasStopped = socket.bytesRead === before;
      before = socket.bytesRead;
      return hasStopped;
    });
    expect(socket.bytesRead, 'bytes read ahead').to.be.at.most(bytes + 3 * READ_BYTES);
  }

  it('A17 a client that never stops sending is not read ahead, and is served in order', async () => {
    const { reached } = slowUpstream();
    const more = get('more').repeat(3_000);
    const client = await stage.client(get('slow') + more);
    const slow = await reached;
    await expectReadingStops(client);
    slow.respond(200, '', 'done');
    await texts(client, 600);
  });

  it('A17 of thousands of requests in one read, four are parsed and the others when there is space', async () => {
    const { reached } = slowUpstream();
    const client = await stage.client(get('slow'));
    const slow = await reached;
    let made = 0;
    stage.daemon.daemon.server.on('request', () => (made += 1));
    client.send('GET /none HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_500));
    await expectReadingStops(client);
    expect(made, 'requests that wait').to.equal(4);
    slow.respond(200, '', 'slow');
    expect((await client.response()).text).to.equal('slow');
    for (let answers = 0; answers < 1_500; answers++) expect((await client.response()).status).to.equal(404);
    expect(made).to.equal(1_500);
  });

  // Reading stops when four requests wait and continues at two.
  for (let count = 1; count <= 13; count++) {
    it(`A17 ${count} requests in one read after another: each gets its response, and so does a later one`, async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow') + 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(count));
      (await reached).respond(200, '', 'slow');
      expect((await client.response()).text).to.equal('slow');
      for (let answers = 0; answers < count; answers++) expect((await client.response()).status).to.equal(404);
      client.send(get('later'));
      expect((await client.response()).text).to.equal('/v1/later');
    });
  }

  const NONE = 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n';

  it('A17 the connection stays open when exactly the maximum number of requests waits', async () => {
    const { reached } = slowUpstream();
    const client = await stage.client(get('slow') + NONE.repeat(4));
    (await reached).respond(200, '', 'slow');
    expect((await client.response()).text).to.equal('slow');
    for (let answers = 0; answers < 4; answers++) expect((await client.response()).status).to.equal(404);
    for (let i = 0; i < 10; i++) await turn();
    stage.daemon.clock.advance(10 * SECOND_MS);
    expect(stage.serverSocket(client).destroyed).to.equal(false);
  });

  it('A17 no request is lost if it is pipelined after a request for a protocol upgrade', async () => {
    const { reached } = slowUpstream();
    const client = await stage.client(get('slow', { Connection: 'Upgrade', Upgrade: 'h2c' }));
    const slow = await reached;
    client.send(NONE.repeat(8_000));
    await expectReadingStops(client);
    slow.respond(200, '', 'slow');
    expect((await client.response()).text).to.equal('slow');
    for (let answers = 0; answers < 8_000; answers++) expect((await client.response()).status).to.equal(404);
  }).timeout(60_000);

  describe('while one request waits for another', () => {
    const LEAVING: Record<string, (client: RawClient) => void> = {
      'closes its connection': (client) => {
        client.destroy();
      },
      'resets it': (client) => {
        client.socket.resetAndDestroy();
      },
      'half-closes it': (client) => {
        client.socket.end();
      },
    };
    for (const [what, leave] of Object.entries(LEAVING)) {
      it(`A17 the client ${what}: the first request is aborted, and the second never begins`, async () => {
        const { reached } = slowUpstream();
        const client = await stage.client(
          get('slow') + get('second') + manage(`DELETE /manage/tokens/${stage.token.id}`),
        );
        const slow = await reached;
        leave(client);
        await slow.closed();
        await client.closed;
        expect(await stage.onlyRecord()).to.include({ outcome: 'client_closed', path: '/v1/slow' });
        expect(targets()).to.deep.equal(['/v1/slow']);
        expect(await stage.daemon.token(stage.token.id)).to.include({ is_active: true, request_count: 1 });
      });
    }

    it('A17 the token is revoked: both requests are refused, in order', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow') + get('second'));
      await reached;
      await stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`);
      expectRefusal(await client.response(), UNAUTHORIZED);
      expectRefusal(await client.response(), UNAUTHORIZED);
      expect(targets()).to.deep.equal(['/v1/slow']);
    });

    it('A17 the upstream does not respond to the first in time: 504, and the second is served', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow') + get('second'));
      await reached;
      stage.daemon.clock.advance(60 * SECOND_MS);
      expectRefusal(await client.response(), UPSTREAM_TIMEOUT);
      expect(await texts(client, 1)).to.deep.equal(['/v1/second']);
    });

    it('A17 the response to the first is cut: the second never begins', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow') + get('second'));
      const slow = await reached;
      slow.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      slow.fin();
      await client.closed;
      expect(targets()).to.deep.equal(['/v1/slow']);
    });

    it('A17 the first request has Connection: close: the second is not served', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow', { Connection: 'close' }) + get('second'));
      (await reached).respond(200, '', 'the last');
      expect(await texts(client, 1)).to.deep.equal(['the last']);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
      expect(targets()).to.deep.equal(['/v1/slow']);
    });

    it('A17 a pipelined probe and a management change are each done in their turn', async () => {
      const { reached } = slowUpstream();
      const revoke = manage(`DELETE /manage/tokens/${stage.token.id}`);
      const client = await stage.client(get('slow') + head('GET /live', null) + revoke + get('late'));
      const slow = await reached;
      expect((await stage.daemon.token(stage.token.id)).is_active).to.equal(true);
      slow.respond(200, '', 'slow');
      expect(await texts(client, 3)).to.deep.equal(['slow', '{"status":"ok"}', '{"message":"token revoked"}']);
      expectRefusal(await client.response(), UNAUTHORIZED);
      expect(targets()).to.deep.equal(['/v1/slow']);
    });

    it('A17 the second request expects 100-continue: the 100 is sent after the response to the first', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(
        get('slow') + stage.post('', { Expect: '100-continue', 'Content-Length': '4' }),
      );
      const slow = await reached;
      expect(client.pending.toString()).to.equal('');
      slow.respond(200, '', 'slow');
      expect(await client.response()).to.include({ status: 200, text: 'slow' });
      expect(await client.response()).to.include({ status: 100 });
      client.send('body');
      expect(await texts(client, 1)).to.deep.equal(['/v1/echo']);
    });

    it('A17 A28 the second request is a CONNECT: the connection closes, because no response may overtake another', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(get('slow'));
      const slow = await reached;
      client.send('CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n');
      await client.closed;
      expect(client.pending.toString()).to.equal('');
      await slow.closed();
    });
  });

  describe('followed by bytes that cannot be parsed', () => {
    it('A18 garbage after a valid request: the request gets its response, then 400, and the connection closes', async () => {
      const { reached } = slowUpstream();
      const client = await stage.client(`${get('slow')}${get('second')}\0 garbage`);
      const slow = await reached;
      expect(client.pending.toString()).to.equal('');
      slow.respond(200, '', 'slow');
      expect(await texts(client, 2)).to.deep.equal(['slow', '/v1/second']);
      expectRefusal(await client.response(), MALFORMED);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
      expect(await stage.uses()).to.equal(2);
    });

    it('A18 garbage in the body of the second request: it is refused in its turn and never begins', async () => {
      const { reached } = slowUpstream();
      const second = stage.post('', { 'Transfer-Encoding': 'chunked' }, '/v1/second') + chunk('good');
      const client = await stage.client(`${get('slow')}${second}zz\r\n`);
      (await reached).respond(200, '', 'slow');
      expect(await texts(client, 1)).to.deep.equal(['slow']);
      expectRefusal(await client.response(), MALFORMED);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
      expect(targets()).to.deep.equal(['/v1/slow']);
      expect(await stage.uses()).to.equal(1);
    });

    it('A18 garbage in the rest of a request that was refused early: no second error is sent', async () => {
      const request = head('POST /v1/echo', 'sk-wt-none', { 'Transfer-Encoding': 'chunked' }) + chunk('good');
      const timers = stage.daemon.clock.pending;
      const client = await stage.client(request);
      expectRefusal(await client.response(), UNAUTHORIZED);
      client.send('zz\r\n');
      await eventually('the daemon waits for the rest', () => stage.daemon.clock.pending > timers);
      stage.daemon.clock.advance(2 * SECOND_MS);
      await client.closed;
      expect(client.pending.toString()).to.equal('');
    });
  });
});

describe('A: several requests on one connection while the daemon stops', () => {
  const stage = new FaultFixture({ env: { SHUTDOWN_GRACE: '30s' } });
  before(() => stage.open());
  after(() => stage.close());

  it('A17 during a shutdown the request in flight gets the last response, and pipelined requests after it never begin', async () => {
    await stage.begin();
    const slow = new Promise<Exchange>((resolve) => {
      stage.upstream.script = (exchange) => {
        if (exchange.target === '/v1/1') resolve(exchange);
        else exchange.respond(200, '', exchange.target);
      };
    });
    const client = await stage.client(stage.get({}, '/v1/1') + stage.get({}, '/v1/2') + stage.get({}, '/v1/3'));
    const first = await slow;
    const stopped = stage.daemon.daemon.stop();
    first.respond(200, '', '/v1/1');
    const last = await client.response();
    expect(last).to.include({ status: 200, text: '/v1/1' });
    expect(last.header('connection')).to.equal('close');
    await client.closed;
    await stopped;
    expect(stage.upstream.exchanges.map(({ target }) => target)).to.deep.equal(['/v1/1']);
    expect(stage.daemon.ended.map(({ path }) => path)).to.deep.equal(['/v1/1']);
  });
});
