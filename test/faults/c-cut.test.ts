import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { startDaemon, temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { chunk, head } from '../support/raw.js';
import { type Expected, expectRefusal, UNREACHABLE, UPSTREAM_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import { type Exchange, ScriptedUpstream } from './support/upstream.js';

const REQUEST_TIMEOUT_MS = 60_000;
const EXACT_MS = 100;

describe('C: an upstream that is silent, or ends too early', () => {
  // The clock stands still: whatever happens without moving it happens at once.
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: `${REQUEST_TIMEOUT_MS}ms` }, clock });

  const REQUESTS: Record<string, () => string> = {
    GET: () => stage.get(),
    HEAD: () => head('HEAD /v1/models', stage.secret),
    POST: () => stage.post('{"a":1}'),
    'POST in chunks': () => stage.post(`${chunk('{"a":1}')}0\r\n\r\n`, { 'Transfer-Encoding': 'chunked' }),
  };

  const SILENCES: Record<string, string> = {
    'sends nothing': '',
    'stops within the head': 'HTTP/1.1 200 OK\r\nContent-',
    'sends only 102 Processing': 'HTTP/1.1 102 Processing\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(REQUESTS)) {
    for (const [silence, says] of Object.entries(SILENCES)) {
      it(`C02 an upstream that ${silence}: 504 after REQUEST_TIMEOUT, and its connection is closed: ${what}`, async () => {
        stage.upstream.script = (exchange) => {
          if (says !== '') exchange.send(says);
        };
        const client = await stage.client(bytes());
        const exchange = await stage.upstream.only();
        await exchange.whole();
        // The last byte may have been sent without being noted as sent yet. One turn of the event loop is enough for that.
        await new Promise(setImmediate);
        clock.advance(REQUEST_TIMEOUT_MS - EXACT_MS);
        await new Promise(setImmediate);
        expect({ ended: stage.daemon.ended, bytes: client.pending.toString() }).to.deep.equal({ ended: [], bytes: '' });
        clock.advance(2 * EXACT_MS);
        const answer = await client.response(what);
        if (what === 'HEAD') expect(answer.status).to.equal(504);
        else expectRefusal(answer, UPSTREAM_TIMEOUT);
        await exchange.closed();
        const ended = await stage.onlyRecord();
        expect(ended).to.include({ outcome: 'timeout', status: 504 });
        expect(ended.durationMs).to.be.within(REQUEST_TIMEOUT_MS - EXACT_MS, REQUEST_TIMEOUT_MS + EXACT_MS);
        expect(await stage.uses()).to.equal(1);
      });
    }
  }

  const fin = (exchange: Exchange) => {
    exchange.fin();
  };
  const rst = (exchange: Exchange) => {
    exchange.rst();
  };
  const broken = (exchange: Exchange) => {
    exchange.socket.write('zz\r\n'); // This is not part of the response.
  };
  const FRAMINGS: [rows: string, framing: string, ends: (exchange: Exchange) => void, fields: string, body: string][] =
    [
      ['C03', 'with a length', fin, 'Content-Length: 10\r\n', 'half'],
      ['C04', 'in chunks', fin, 'Transfer-Encoding: chunked\r\n', chunk('half')],
      ['C04', 'that ends within a chunk', fin, 'Transfer-Encoding: chunked\r\n', '8\r\nhalf'],
      [
        'C04',
        'in chunks, without the empty line after the last one,',
        fin,
        'Transfer-Encoding: chunked\r\n',
        `${chunk('half')}0\r\n`,
      ],
      ['C04 C16', 'in chunks, one of them broken,', broken, 'Transfer-Encoding: chunked\r\n', chunk('half')],
      ['C05', 'with a length', rst, 'Content-Length: 10\r\n', 'half'],
      ['C05', 'in chunks', rst, 'Transfer-Encoding: chunked\r\n', chunk('half')],
      ['C05 C17', 'delimited by the end of its connection', rst, '', 'half'],
      ['C05 C17', 'with Connection: close', rst, 'Connection: close\r\n', 'half'],
    ];
  const CLIENTS: Record<string, string> = { 'HTTP/1.1': '\r\n4\r\nhalf\r\n', 'HTTP/1.0': '\r\n\r\nhalf' };
  for (const [row, framing, ends, fields, body] of FRAMINGS) {
    for (const [version, inChunks] of Object.entries(CLIENTS)) {
      it(`${row} a response ${framing} that ends by ${ends.name}: a client of ${version} sees that it is cut`, async () => {
        let exchange: Exchange | undefined;
        stage.upstream.script = (it) => {
          exchange = it;
          it.send(`HTTP/1.1 200 OK\r\n${fields}\r\n${body}`);
        };
        const client = await stage.client(stage.get().replace('HTTP/1.1', version));
        await client.seen('half');
        ends(exchange!);
        await client.closed;
        const isDeclared = fields.startsWith('Content-Length');
        const received = client.pending.toString();
        expect(received).to.match(/^HTTP\/1\.1 200 OK\r\n/);
        expect(received.endsWith(isDeclared ? '\r\n\r\nhalf' : inChunks), received).to.equal(true);
        // In HTTP/1.0 an orderly close would be the end of the response.
        expect(client.wasReset, 'reset').to.equal(version === 'HTTP/1.0');
        expect(await stage.onlyRecord()).to.include({ outcome: 'truncated', status: 200 });
        expect(await stage.uses()).to.equal(1);
      });
    }
  }

  it('C03 an HTTP/1.0 client is cut off at once too when the upstream falls silent', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('half')}`);
    };
    const client = await stage.client(stage.get().replace('HTTP/1.1', 'HTTP/1.0'));
    await client.seen('half');
    clock.advance(REQUEST_TIMEOUT_MS);
    await client.closed;
    expect(client.wasReset).to.equal(true);
    expect(await stage.onlyRecord()).to.include({ outcome: 'timeout', status: 200 });
  });

  const NOTHING: [what: string, says: string, ends: (exchange: Exchange) => void, expected: Expected][] = [
    ['closes without a byte', '', fin, UNREACHABLE],
    ['resets without a byte', '', rst, UNREACHABLE],
    ['closes within the head', 'HTTP/1.1 200 OK\r\nContent-', fin, UNREACHABLE],
    ['resets within the head', 'HTTP/1.1 200 OK\r\nContent-', rst, UNREACHABLE],
    ['closes after 102 Processing', 'HTTP/1.1 102 Processing\r\n\r\n', fin, UNREACHABLE],
  ];
  for (const [what, says, ends, expected] of NOTHING) {
    for (const [request, bytes] of Object.entries(REQUESTS)) {
      it(`C06 an upstream that ${what} on a new connection: 502, and the request is not sent again: ${request}`, async () => {
        stage.upstream.script = async (exchange) => {
          await exchange.whole();
          if (says !== '') exchange.send(says);
          ends(exchange);
        };
        const client = await stage.client(bytes());
        const answer = await client.response(request);
        if (request === 'HEAD') expect(answer.status).to.equal(502);
        else expectRefusal(answer, expected);
        expect((await stage.upstream.only()).isReused).to.equal(false);
        expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_error', status: 502 });
        expect(await stage.uses()).to.equal(1);
      });
    }
  }
});

describe('C: an upstream that ends too early, and a client on a Unix socket', () => {
  it('C05 the connection is closed without its last chunk, because a Unix socket cannot be reset', async () => {
    const upstream = await new ScriptedUpstream().listen();
    upstream.script = (exchange) => {
      exchange.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk('half')}`);
      exchange.fin();
    };
    const path = join(temporaryFolder(), 'llmp.sock');
    const env = { LISTEN_ADDR: `unix:${path}`, MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' };
    const daemon = await startDaemon({ upstream: upstream.url, env });
    try {
      const { token } = await daemon.createToken((await daemon.createProject()).id);
      for (let round = 1; round <= 2; round++) {
        const client = connect(path)
          .on('error', () => undefined)
          .resume();
        client.write(head('GET /v1/models', token).replace('HTTP/1.1', 'HTTP/1.0'));
        await once(client, 'close');
        await eventually('it has ended', () => daemon.ended.length === round);
        expect(daemon.ended.map(({ outcome }) => outcome)).to.deep.equal(Array(round).fill('truncated'));
      }
    } finally {
      await daemon.stop();
      await upstream.stop();
    }
  });
});
