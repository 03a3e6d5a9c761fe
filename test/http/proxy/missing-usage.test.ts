import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { isUsageEvent, lacksUsage, requestingUsage } from '../../../daemon/core/content/stream-options.js';
import { MAX_BODY_BYTES, UsageFilter } from '../../../daemon/http/proxy/added-usage.js';
import type { Receiver } from '../../../daemon/http/proxy/forwarder.js';
import { UPSTREAM_KEY } from '../../support/daemon.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { json } from '../../support/provider.js';
import { chunk, head, LAST_CHUNK } from '../../support/raw.js';

const USAGE = { prompt_tokens: 7, completion_tokens: 11, total_tokens: 18 };
const EVENTS = [
  { id: 'c', model: 'm', choices: [], prompt_filter_results: [{}], usage: null },
  { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: '"usage":{} wörld' } }], usage: null },
  { id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 7 } },
];
const USAGE_EVENT = { id: 'c', model: 'm', choices: [], usage: USAGE };

/** @returns the events of a stream with the lines of a server. */
const written = (events: readonly (object | string)[], end: string) =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}${end}${end}`).join('');

const ASKED = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] };

describe('missing_usage: inject', function () {
  this.timeout(30_000);

  describe('the request', () => {
    it('gets the option, and keeps all other bytes', () => {
      for (const [before, after, rest] of [
        ['{', '"model":"m","stream":true}', ''],
        ['\ufeff \n{', ' \n "stream" : true , "x": {"stream_options": 1}, "a": 1.0e2 }', '\n'],
        ['{', '"str\\u0065am":true}', ''],
      ] as const) {
        const body = Buffer.from(before + after + rest);
        expect(requestingUsage(body)?.toString()).to.equal(
          `${before}"stream_options":{"include_usage":true},${after}${rest}`,
        );
      }
    });

    it('stays as it is without a stream, with stream_options, and if it is ambiguous', () => {
      for (const body of [
        '{"model":"m"}',
        '{"stream":false}',
        '{"stream":"true"}',
        '{"stream":true,"stream_options":{"include_usage":false}}',
        '{"stream":true,"stream_options":{"include_usage":true}}',
        '{"stream":true,"stream_options":{}}',
        '{"stream":true,"stream_options":null}',
        '{"stream":true,"stream\\u005foptions":null}',
        '{"stream":false,"stream":true}',
        '{"x":{"stream":true}}',
        '[{"stream":true}]',
        '"stream"',
        'stream=true',
        '',
      ]) {
        expect(requestingUsage(Buffer.from(body)), body).to.equal(null);
      }
      expect(requestingUsage(Buffer.from('{"stream":true}', 'utf16le'))).to.equal(null);
    });
  });

  describe('the response', () => {
    /** What passes a filter, piece by piece. */
    function filtered(pieces: readonly string[]): { text: string; removed: string | undefined; most: number } {
      const passed: Buffer[] = [];
      let isComplete = false;
      const next: Receiver = {
        head: () => undefined,
        data(bytes) {
          passed.push(Buffer.from(bytes));
          return true;
        },
        end() {
          isComplete = true;
        },
        fail: () => undefined,
      };
      const filter = new UsageFilter(next);
      filter.head(
        200,
        ['Content-Type', 'text/event-stream; charset=utf-8'].map((text) => Buffer.from(text)),
      );
      let [given, most] = [0, 0];
      for (const piece of pieces) {
        filter.data(Buffer.from(piece, 'latin1'));
        given += piece.length;
        most = Math.max(most, given - passed.reduce((sum, { length }) => sum + length, 0));
      }
      filter.end();
      expect(isComplete).to.equal(true);
      return { text: Buffer.concat(passed).toString('latin1'), removed: filter.removed?.toString(), most };
    }

    for (const [name, end] of Object.entries({ LF: '\n', CRLF: '\r\n', CR: '\r' })) {
      it(`loses the event with the usage, wherever it is cut, with lines that end with ${name}`, () => {
        const all = written([...EVENTS, USAGE_EVENT, '[DONE]'], end);
        const text = Buffer.from(`: ping${end}${end}${all}`).toString('latin1');
        const expected = text.replace(written([USAGE_EVENT], end), '');
        expect(expected).not.to.equal(text);
        for (let at = 0; at <= text.length; at++) {
          expect(filtered([text.slice(0, at), text.slice(at)]).text, String(at)).to.equal(expected);
        }
        expect(filtered(text.split(''))).to.deep.include({ text: expected, removed: filtered([text]).removed });
      });
    }

    it('passes a longer event as it arrives, and never holds more than 4 KiB', () => {
      const long = { ...USAGE_EVENT, x: 'x'.repeat(100_000) };
      const latin1 = (events: readonly (object | string)[]) => Buffer.from(written(events, '\n')).toString('latin1');
      const text = latin1([EVENTS[1]!, long, USAGE_EVENT, '[DONE]']);
      const { text: passed, most } = filtered(text.match(/[^]{1,1000}/g) ?? []);
      expect(passed === latin1([EVENTS[1]!, long, '[DONE]'])).to.equal(true);
      expect(most).to.be.at.most(4 * 1024);
    });

    it('loses an unfinished last event only if it is the one with the usage', () => {
      expect(filtered([`data: ${JSON.stringify(USAGE_EVENT)}`]).text).to.equal('');
      expect(filtered(['data: {"choices":[']).text).to.equal('data: {"choices":[');
      expect(filtered(['\n\n\r\n\n: x\n\ndata\n\n']).text).to.equal('\n\n\r\n\n: x\n\ndata\n\n');
    });

    it('keeps what is not only usage', () => {
      for (const event of [...EVENTS, { ...USAGE_EVENT, error: { code: 'x' } }, { usage: USAGE }, 'null', '[1]']) {
        expect(isUsageEvent(Buffer.from(written([event], '\n')))).to.equal(false);
      }
      expect(isUsageEvent(Buffer.from('data: {"choices":[],\ndata: "usage":{"a":1}}\n\n'))).to.equal(true);
    });
  });

  describe('of a project', () => {
    const scene = ProxyFixture.forSuite({ HTTP_CACHE_ENABLED: 'true' });
    let project: WireProject;
    let token: WireTokenCreated;

    before(async () => {
      const fields = { name: 'injects', api_key: UPSTREAM_KEY, missing_usage: 'inject' };
      project = (await scene.daemon.manage('POST', '/manage/projects', fields)).body as WireProject;
    });
    beforeEach(async () => {
      token = await scene.daemon.createToken(project.id);
      scene.provider.answer = (_req, res, { body }) => {
        const { stream_options: options } = JSON.parse(body.toString()) as { stream_options?: object };
        const all = [...EVENTS, ...(options ? [USAGE_EVENT] : []), '[DONE]'];
        res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'max-age=60' });
        for (const piece of written(all, '\n').match(/[^]{1,100}/g) ?? []) res.write(piece);
        res.end();
      };
    });

    const WITHOUT = written([...EVENTS, '[DONE]'], '\n');
    const WITH = written([...EVENTS, USAGE_EVENT, '[DONE]'], '\n');

    async function ask(
      asked: string,
      { headers = {}, path = '/v1/chat/completions', secret = token.token } = {},
    ): Promise<{ text: string; sent: string; headers: Headers }> {
      const init = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: asked };
      const response = await scene.daemon.call(secret, path, init);
      const text = await response.text();
      return { text, sent: scene.provider.received.at(-1)?.body.toString() ?? '', headers: response.headers };
    }

    it('counts the usage of a client that sees none', async () => {
      const { text, sent, headers } = await ask(JSON.stringify(ASKED), { headers: { 'Accept-Encoding': 'gzip, br' } });
      expect(text).to.equal(WITHOUT);
      expect(headers.get('content-type')).to.equal('text/event-stream');
      expect(JSON.parse(sent)).to.deep.equal({ ...ASKED, stream_options: { include_usage: true } });
      expect(scene.provider.received.at(-1)?.headers).to.include({ 'accept-encoding': 'identity' });
      await scene.inFlight(0);
      const [ended] = scene.daemon.ended;
      expect(ended?.usage).to.deep.include({ promptTokens: 7, completionTokens: 11 });
      expect(ended).to.include({ model: 'm', outcome: 'ok', streamed: true, bytesOut: Buffer.byteLength(WITHOUT) });
    });

    it('waits for a body up to 1 MiB, also in chunks, and forwards a longer one as it is', async () => {
      const body = (bytes: number) => JSON.stringify({ ...ASKED, x: 'x'.repeat(bytes) });
      expect((await ask(body(500_000))).text).to.equal(WITHOUT);
      expect((await ask(body(1_100_000))).text).to.equal(WITHOUT);
      expect(scene.provider.received.map((each) => each.body.includes('stream_options'))).to.deep.equal([true, false]);
      const fields = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'application/json' };
      const pieces = body(70_000).match(/[^]{1,50000}/g) ?? [];
      const request = head('POST /v1/chat/completions', token.token, fields) + pieces.map(chunk).join('') + LAST_CHUNK;
      expect((await scene.send(request)).text).to.equal(WITHOUT);
      expect(scene.provider.received.at(-1)?.body.includes('stream_options')).to.equal(true);
      expect(scene.provider.received.at(-1)?.headers['content-length']).to.be.a('string');
    });

    it('leaves alone what is not a plain request for a stream of a chat', async () => {
      const asked = JSON.stringify(ASKED);
      const explicit = JSON.stringify({ ...ASKED, stream_options: { include_usage: true } });
      expect((await ask(explicit)).text).to.equal(WITH);
      const refusing = JSON.stringify({ ...ASKED, stream_options: { include_usage: false } });
      for (const [body, more] of [
        [explicit, {}],
        [refusing, {}],
        [asked, { path: '/v1/completions' }],
        [asked, { headers: { 'Content-Type': 'text/plain' } }],
        [asked, { headers: { 'Content-Digest': 'sha-256=:x:' } }],
        [asked, { secret: scene.secret }],
      ] as const) {
        expect((await ask(body, more)).sent, JSON.stringify(more)).to.equal(body);
      }
      const compressed = gzipSync(asked);
      scene.provider.answer = (_req, res) => {
        json(res, 200, {});
      };
      await scene.daemon.call(token.token, '/v1/chat/completions', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
        body: compressed,
      });
      expect(scene.provider.received.at(-1)?.body.equals(compressed)).to.equal(true);
    });

    it('passes an error, and a compressed response of a provider that ignores the wish, as they are', async () => {
      scene.provider.answer = (_req, res) => {
        json(res, 400, { error: { message: 'no', usage: {}, choices: [] } });
      };
      expect((await ask(JSON.stringify(ASKED))).text).to.equal('{"error":{"message":"no","usage":{},"choices":[]}}');
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' }).end(gzipSync(WITH));
      };
      expect((await ask(JSON.stringify(ASKED))).text).to.equal(WITH);
    });

    it('declares no length for a response of which it removed a part', async () => {
      scene.provider.answer = (_req, res) => {
        const length = Buffer.byteLength(WITH);
        res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Length': length, Digest: 'x=y' }).end(WITH);
      };
      const { text, headers } = await ask(JSON.stringify(ASKED));
      expect(text).to.equal(WITHOUT);
      expect([headers.get('content-length'), headers.get('digest')]).to.deep.equal([null, null]);
    });

    it('caches what each client has asked for', async () => {
      const opted = { headers: { 'Cache-Control': 'public, max-age=60' } };
      const asked = JSON.stringify({ ...ASKED, n: 1 });
      const explicit = JSON.stringify({ ...ASKED, n: 1, stream_options: { include_usage: true } });
      for (const cache of ['miss', 'hit']) {
        for (const [body, expected] of [
          [asked, WITHOUT],
          [explicit, WITH],
        ] as const) {
          const { text, headers } = await ask(body, opted);
          expect(text).to.equal(expected);
          expect(headers.get('x-proxy-cache')).to.equal(cache);
        }
      }
      expect(scene.provider.received).to.have.lengthOf(2);
      // The stored response is right for the project without the setting too.
      await scene.daemon.manage('PATCH', `/manage/projects/${project.id}`, { missing_usage: 'off' });
      expect((await ask(asked, opted)).text).to.equal(WITHOUT);
      await scene.daemon.manage('PATCH', `/manage/projects/${project.id}`, { missing_usage: 'inject' });
    });

    it('is changed at once, and is audited', async () => {
      const path = `/manage/projects/${project.id}`;
      const asked = JSON.stringify(ASKED);
      for (const value of ['off', 'inject']) {
        const changed = await scene.daemon.manage('PATCH', path, { missing_usage: value });
        expect(changed.body).to.include({ missing_usage: value });
        expect((await ask(asked)).sent.includes('stream_options')).to.equal(value === 'inject');
      }
      const audit = await scene.daemon.manage('GET', `/manage/audit?project_id=${project.id}&limit=1`);
      expect(audit.body).to.have.deep.nested.property('[0].details', { missing_usage: ['off', 'inject'] });
      expect((await scene.daemon.manage('PATCH', path, { missing_usage: 'others' })).status).to.equal(400);
    });
  });
});

describe('missing_usage: refuse', () => {
  it('looks for a stream that does not ask for its usage', () => {
    const lacking = [
      '{"stream":true}',
      '{"stream":true,"stream_options":null}',
      '{"stream":true,"stream_options":{}}',
      '{"stream":true,"stream_options":{"include_usage":false}}',
      '{"str\\u0065am":true}',
      '{"stream":false,"stream":true}',
      '{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}',
      '{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}',
      '{"stream":true,"x":{"stream_options":{"include_usage":true}}}',
    ];
    const asking = [
      '{"model":"m"}',
      '{"stream":false}',
      '{"stream":null,"stream_options":{}}',
      '{"stream":true,"stream_options":{"include_usage":true}}',
      '{ "stream_options" : { "include_usage" : true } , "stream" : true }',
    ];
    expect([...lacking, ...asking].filter((body) => lacksUsage(Buffer.from(body)))).to.deep.equal(lacking);
  });

  describe('of a project', () => {
    const scene = ProxyFixture.forSuite();
    let secret: string;

    before(async () => {
      const fields = { name: 'refuses', api_key: UPSTREAM_KEY, missing_usage: 'refuse' };
      const project = (await scene.daemon.manage('POST', '/manage/projects', fields)).body as WireProject;
      secret = (await scene.daemon.createToken(project.id, { max_requests: 10 })).token;
    });
    beforeEach(() => {
      scene.provider.answer = (_req, res) => {
        json(res, 200, { choices: [], usage: USAGE });
      };
    });

    const ask = (body: object, path = '/v1/chat/completions', headers = {}) =>
      scene.daemon.call(secret, path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const asking = { ...ASKED, stream_options: { include_usage: true } };

    it('is refused before it draws a use, and the client is told what to send', async () => {
      for (const more of [{}, { x: 'x'.repeat(2 * 1024 * 1024) }]) {
        const response = await ask({ ...ASKED, ...more });
        expect(response.status).to.equal(400);
        expect(response.headers.get('x-should-retry')).to.equal('false');
        expect(await response.json()).to.include({
          code: 'usage_not_requested',
          hint: 'send "stream_options": {"include_usage": true}',
        });
      }
      expect(scene.provider.received).to.have.lengthOf(0);
      expect((await ask(asking)).headers.get('x-token-requests-remaining')).to.equal('9');
    });

    it('concerns no other requests', async () => {
      for (const [body, path] of [
        [asking, '/v1/chat/completions'],
        [{ ...ASKED, stream: false }, '/v1/chat/completions'],
        [ASKED, '/v1/responses'],
      ] as const)
        expect((await ask(body, path)).status).to.equal(200);
      // It would not be waited for.
      expect((await ask({ ...ASKED, x: 'x'.repeat(MAX_BODY_BYTES.refuse ?? 0) })).status).to.equal(200);
    });
  });
});

describe('missing_usage: bound', () => {
  const scene = ProxyFixture.forSuite();

  it('charges a soft budget the bound of a response without a usage, and without the setting an estimate', async () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.end(written([...EVENTS.slice(0, 2), '[DONE]'], '\n'));
    };
    const spent: number[] = [];
    for (const setting of ['off', 'bound'] as const) {
      const fields = { name: setting, api_key: UPSTREAM_KEY, missing_usage: setting };
      const project = (await scene.daemon.manage('POST', '/manage/projects', fields)).body as WireProject;
      const { id, token } = await scene.daemon.createToken(project.id, { budget: { tokens: 100_000, mode: 'soft' } });
      const init = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
      const body = JSON.stringify({ ...ASKED, max_tokens: 5_000 });
      expect((await scene.daemon.call(token, '/v1/chat/completions', { ...init, body })).status).to.equal(200);
      await scene.inFlight(0);
      scene.daemon.daemon.scheduler.publishAll();
      spent.push((await scene.daemon.token(id)).spent.tokens);
      if (setting === 'bound') expect(spent[1]).to.equal(body.length + 512 + 5_000);
    }
    expect(spent[0]).to.equal(1_000);
  });
});
