import { expect } from 'chai';
import { MemoryResponseCache } from '../../daemon/store/memory/response-cache.js';
import { head, type RawResponse, WEBSOCKET } from '../support/raw.js';
import { expectRefusal, UPSTREAM_MALFORMED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';

const FIELDS_OF_A_REFUSAL = [
  'Content-Type',
  'Content-Length',
  'X-Request-ID',
  'X-PROXY-CACHE',
  'Date',
  'Connection',
  'Keep-Alive',
];
const OK = 'HTTP/1.1 200 OK\r\n';

describe('C: an upstream with a malformed response', () => {
  const { stage, it } = staged();

  /** The response on a separate connection, if the upstream sends this, then nothing, and does not close. */
  async function answerTo(says: string, request = stage.get()): Promise<RawResponse> {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.send(says);
    };
    return stage.ask(request, /^\S+/.exec(request)?.[0]);
  }

  /** Checks that the next request gets its own response, whatever the previous one left behind. */
  async function expectNextIsAnswered(): Promise<void> {
    stage.upstream.script = (exchange) => {
      exchange.respond(200, '', '"the next one"');
    };
    expect((await stage.ask(stage.get())).text).to.equal('"the next one"');
  }

  const EXTRA: Record<string, string> = {
    'a few bytes': 'EXTRA',
    'a whole response': `${OK}Content-Length: 7\r\n\r\n"stale"`,
    'the beginning of a response': OK,
  };
  for (const [what, extra] of Object.entries(EXTRA)) {
    it(`C09 bytes after Content-Length reach no client: ${what}`, async () => {
      const answer = await answerTo(`${OK}Content-Length: 2\r\n\r\n{}${extra}`);
      expect(answer).to.include({ status: 200, text: '{}' });
      const [exchange] = stage.upstream.exchanges;
      await exchange!.closed();
      await expectNextIsAnswered();
      expect(stage.upstream.exchanges[1]).to.include({ isReused: false });
    });

    it(`C09 bytes that arrive later, on the idle connection, reach no client either: ${what}`, async () => {
      await answerTo(`${OK}Content-Length: 2\r\n\r\n{}`);
      const [exchange] = stage.upstream.exchanges;
      exchange!.send(extra);
      await exchange!.closed();
      await expectNextIsAnswered();
    });
  }

  const MALFORMED: Record<string, string> = {
    'a length and a transfer coding': `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'a transfer coding and a length': `${OK}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'two lengths': `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    'one length twice': `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`,
    'a length that is not a number': `${OK}Content-Length: 2x\r\n\r\nab`,
    'a negative length': `${OK}Content-Length: -2\r\n\r\nab`,
    'a length that overflows': `${OK}Content-Length: 99999999999999999999999\r\n\r\nab`,
    'a broken header name': `${OK}X A: b\r\n\r\n`,
    'a header without a colon': `${OK}Nothing\r\n\r\n`,
    'a control character in a header': `${OK}X-A: \x01\r\n\r\n`,
    'a NUL in a header': `${OK}X-A: a\0b\r\n\r\n`,
    'a CR in a header': `${OK}X-A: a\rX-B: b\r\n\r\n`,
    'a folded header': `${OK}X-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}`,
    'status 99': 'HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\n{}',
    'status 099': 'HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\n{}',
    'status 000': 'HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\n{}',
    'status 1000': 'HTTP/1.1 1000 High\r\nContent-Length: 2\r\n\r\n{}',
    'no status': 'HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}',
    'another protocol': 'SSH-2.0-OpenSSH_9.6\r\n',
    'a request': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'a TLS alert': '\x15\x03\x03\x00\x02\x02\x46',
    'nothing but garbage': '\0\xff\xfe'.repeat(100),
    'more than 64 KiB of headers': `${OK}X-A: ${'b'.repeat(65 * 1024)}\r\n\r\n`,
    'more than 64 KiB of small headers': `${OK}${'X-A: b\r\n'.repeat(12_000)}\r\n`,
    'another transfer coding': `${OK}Transfer-Encoding: gzip\r\n\r\nab`,
    'another transfer coding within chunks': `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    'another transfer coding in a line of its own': `${OK}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
  };
  for (const [what, says] of Object.entries(MALFORMED)) {
    it(`C10 C16 ${what}: 502 without any of its headers, and the connection is discarded`, async () => {
      const answer = await answerTo(says);
      expectRefusal(answer, UPSTREAM_MALFORMED);
      expect(answer.fields.map(([name]) => name)).to.have.members(FIELDS_OF_A_REFUSAL);
      await (await stage.upstream.only()).closed();
      expect(await stage.onlyRecord()).to.include({
        outcome: 'upstream_error',
        status: 502,
        code: 'upstream_malformed',
      });
      expect(await stage.uses()).to.equal(1);
    });
  }

  const REASONS: Record<string, string> = {
    'a control character': 'O\x01K',
    'Latin-1': 'Tr\xe8s bien',
    'a long one': 'x'.repeat(10_000),
    none: '',
  };
  for (const [what, reason] of Object.entries(REASONS)) {
    it(`C11 the reason phrase is not forwarded: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`HTTP/1.1 404 ${reason}\r\nContent-Length: 2\r\n\r\n{}`);
      };
      const client = await stage.client(stage.get());
      await client.seen('{}');
      expect(client.pending.toString('latin1')).to.match(/^HTTP\/1\.1 404 Not Found\r\n/);
    });
  }

  for (const fields of ['', 'Upgrade: x\r\nConnection: upgrade\r\n', 'Upgrade: websocket\r\nConnection: upgrade\r\n']) {
    it(`C12 a 101 that was not requested, with ${JSON.stringify(fields)}: 502`, async () => {
      expectRefusal(await answerTo(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`), UPSTREAM_MALFORMED);
      await (await stage.upstream.only()).closed();
    });
  }

  const INTERIM: Record<string, string> = {
    102: 'HTTP/1.1 102 Processing\r\n\r\n',
    103: 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nX-PROXY-CACHE: hit\r\n\r\n',
    199: 'HTTP/1.1 199 Unheard of\r\nContent-Length: 2\r\n\r\n',
    'both, many times': 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(100),
  };
  for (const [what, says] of Object.entries(INTERIM)) {
    it(`C13 interim responses are dropped, and the final one is delivered once: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`${says}${OK}Content-Length: 2\r\nX-Theirs: a\r\n\r\n{}`);
      };
      const client = await stage.client(stage.get());
      const answer = await client.response();
      expect(answer).to.include({ status: 200, text: '{}' });
      expect(answer.all('x-theirs')).to.deep.equal(['a']);
      expect(answer.all('link')).to.be.empty;
      client.send(stage.get());
      expect((await client.response()).text, 'nothing was left over').to.equal('{}');
    });
  }

  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
  const CONTINUED: Record<string, string> = {
    alone: CONTINUE,
    'with fields': 'HTTP/1.1 100 Continue\r\nContent-Length: 2\r\nX-A: HTTP/1.1 100\r\n\r\n',
    'many times': CONTINUE.repeat(100),
    'among others': `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${CONTINUE}HTTP/1.1 102 Processing\r\n\r\n${CONTINUE}`,
  };
  for (const [what, says] of Object.entries(CONTINUED)) {
    for (const pieceBytes of [Infinity, 1, 7]) {
      it(`C13 a 100 that was not requested is dropped: ${what}, ${pieceBytes} bytes at a time`, async () => {
        // A body that looks like one is not changed.
        const body = `${CONTINUE}${says}`;
        stage.upstream.script = async (exchange) => {
          await exchange.whole();
          const bytes = `${says}${OK}Content-Length: ${body.length}\r\n\r\n${body}`;
          const step = Math.min(pieceBytes, bytes.length);
          for (let at = 0; at < bytes.length; at += step) {
            exchange.send(bytes.slice(at, at + step));
            if (at < says.length + 20) await new Promise((resolve) => setImmediate(resolve));
          }
        };
        const client = await stage.client(stage.post('{}'));
        expect(await client.response()).to.include({ status: 200, text: body });
        client.send(stage.get());
        expect((await client.response()).text, 'nothing was left over').to.equal(body);
        expect(stage.upstream.exchanges.map(({ isReused }) => isReused)).to.deep.equal([false, true]);
      });
    }
  }

  it('C13 a 100 before the body of the request has arrived is dropped', async () => {
    stage.upstream.script = async (exchange) => {
      exchange.send(CONTINUE);
      await exchange.whole();
      exchange.respond(200, '', 'after it');
    };
    const client = await stage.client(stage.post('4\r\nhalf\r\n', { 'Transfer-Encoding': 'chunked' }));
    await stage.upstream.only();
    client.send('4\r\nhalf\r\n0\r\n\r\n');
    expect(await client.response()).to.include({ status: 200, text: 'after it' });
  });

  for (const [what, status] of [
    ['accepted', 101],
    ['refused', 403],
  ] as const) {
    it(`C13 a 100 before the response to a WebSocket WEBSOCKET that is ${what} is dropped`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(CONTINUE);
        if (status === 101) exchange.switchProtocols();
        else exchange.respond(status);
      };
      expect((await stage.ask(stage.get(WEBSOCKET))).status).to.equal(status);
    });
  }

  it('C13 a 100 without a final response: 502', async () => {
    stage.upstream.script = (exchange) => {
      exchange.send(CONTINUE);
      exchange.fin();
    };
    expect((await stage.ask(stage.get())).status).to.equal(502);
  });

  const BODILESS: [what: string, says: string, length: string[]][] = [
    ['204 with a length and a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n"body"', []],
    ['204 with a length and no body', 'HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\n', []],
    ['204 in chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n', []],
    ['204 with a body', 'HTTP/1.1 204 No Content\r\n\r\n{}', []],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', []],
    ['304 with a length and a body', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n"body"', ['6']],
    ['304 with a length and no body', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\nETag: "a"\r\n\r\n', ['6']],
    ['304 with a body', 'HTTP/1.1 304 Not Modified\r\n\r\n{}', []],
    ['304', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', []],
  ];
  for (const [what, says, length] of BODILESS) {
    it(`C14 a response without a body ends with its head, whatever follows: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(says);
      };
      const client = await stage.client(stage.get());
      const answer = await client.response();
      expect(answer.status).to.equal(Number(what.slice(0, 3)));
      expect(answer.all('content-length')).to.deep.equal(length);
      expect(answer.all('transfer-encoding')).to.be.empty;
      expect(await stage.onlyRecord()).to.include({ outcome: 'ok', status: answer.status });
      stage.upstream.script = (exchange) => {
        exchange.respond(200, '', '"the next one"');
      };
      client.send(stage.get());
      expect((await client.response()).text, 'on the same connection').to.equal('"the next one"');
    });
  }

  const HEADS: [what: string, fields: string, body: string][] = [
    ['with a length', 'Content-Length: 200\r\n', ''],
    ['in chunks', 'Transfer-Encoding: chunked\r\n', ''],
    ['without either', '', ''],
    ['and a forbidden body', 'Content-Length: 2\r\n', '{}'],
  ];
  for (const [what, fields, body] of HEADS) {
    it(`C15 the response to HEAD ends with its head: ${what}`, async () => {
      stage.upstream.script = (exchange) => {
        exchange.send(`${OK}${fields}\r\n${body}`);
      };
      const client = await stage.client(head('HEAD /v1/models', stage.secret));
      const answer = await client.response('HEAD');
      expect(answer.status).to.equal(200);
      expect(answer.all('content-length')).to.deep.equal(fields.match(/\d+/g) ?? []);
      expect(await stage.onlyRecord()).to.include({ outcome: 'ok' });
      stage.upstream.script = (exchange) => {
        exchange.respond(200, '', '"the next one"');
      };
      client.send(stage.get());
      expect((await client.response()).text).to.equal('"the next one"');
    });
  }

  const ENDLESS: Record<string, string> = {
    'of HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nall of it',
    'of HTTP/1.1': 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it',
    'without a length': 'HTTP/1.1 200 OK\r\n\r\nall of it',
  };
  for (const [what, says] of Object.entries(ENDLESS)) {
    for (const [version, body] of [
      ['HTTP/1.1', '9\r\nall of it\r\n0\r\n\r\n'],
      ['HTTP/1.0', 'all of it'],
    ] as const) {
      it(`C17 a response ${what} is complete when its connection ends: to a client of ${version}`, async () => {
        stage.upstream.script = (exchange) => {
          exchange.send(says);
        };
        const client = await stage.client(stage.get().replace('HTTP/1.1', version));
        await client.seen('all of it');
        expect(stage.daemon.ended, 'not yet complete').to.be.empty;
        (await stage.upstream.only()).fin();
        expect(await stage.onlyRecord()).to.include({ outcome: 'ok', status: 200 });
        await client.seen(body);
        expect(client.pending.toString().split('\r\n\r\n').slice(1).join('\r\n\r\n')).to.equal(body);
        if (version === 'HTTP/1.0') await client.closed;
        expect(client.wasReset).to.equal(false);
      });
    }
  }
});

describe('C: an upstream with a malformed response to a change, which other processes have to learn of first', () => {
  const { stage, it } = staged({ env: { HTTP_CACHE_ENABLED: 'true' } });
  const own = Object.getOwnPropertyDescriptor(MemoryResponseCache.prototype, 'invalidate')!;
  before(() => {
    // As with several workers.
    Object.defineProperty(MemoryResponseCache.prototype, 'invalidate', { ...own, value: () => Promise.resolve() });
  });
  after(() => {
    Object.defineProperty(MemoryResponseCache.prototype, 'invalidate', own);
  });

  it('C10 another transfer coding: 502, and the connection is discarded', async () => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.send(`${OK}Transfer-Encoding: gzip\r\n\r\nab`);
    };
    expectRefusal(await stage.ask(stage.post('{}'), 'POST'), UPSTREAM_MALFORMED);
    await (await stage.upstream.only()).closed();
    expect(await stage.onlyRecord()).to.include({ outcome: 'upstream_error', code: 'upstream_malformed' });
  });

  it('C10 a response that is not malformed is passed on as a whole', async () => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond(200, '', '"done"');
    };
    expect((await stage.ask(stage.post('{}'), 'POST')).text).to.equal('"done"');
  });
});
