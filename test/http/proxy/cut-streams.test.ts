/** Notices to clients whose response is cut short. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { EventBoundary } from '../../../daemon/http/proxy/termination-notice.js';
import { eventually } from '../../support/eventually.js';
import { chunk, type Fields, head, LAST_CHUNK, type RawClient } from '../../support/raw.js';
import { Realtime } from '../../support/realtime.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const OPENAI: Fields = { 'X-Stainless-Lang': 'js' };
const REVOKED = { message: 'token revoked', type: 'authentication_error', code: 'token_revoked' };

const revoke = ({ daemon, token }: ProxyFixture) => daemon.manage('DELETE', `/manage/tokens/${token.id}`);
const setProject = ({ daemon, project }: ProxyFixture, isActive: boolean) =>
  daemon.manage('PATCH', `/manage/projects/${project.id}`, { is_active: isActive });

/** A client that has received everything that the provider sent of its response. */
async function inTheMiddle(
  scene: ProxyFixture,
  sent: readonly string[],
  fields: Fields = {},
  answerFields: Record<string, string> = {},
): Promise<{ client: RawClient; upstream: ServerResponse }> {
  let upstream: ServerResponse | undefined;
  scene.provider.answer = (_req, res) => {
    upstream = res.writeHead(200, { 'Content-Type': 'text/event-stream', ...answerFields });
    res.flushHeaders();
    for (const piece of sent) res.write(piece);
  };
  const client = await scene.client(
    head('POST /v1/chat/completions', scene.secret, { 'Content-Length': '0', ...fields }),
  );
  await client.seen(sent.at(-1) ?? '\r\n\r\n');
  await scene.inFlight(1);
  return { client, upstream: upstream! };
}

/** The received bytes after the head, once the connection has ended; never in the form of a complete response. */
async function cutAnswer(client: RawClient): Promise<string> {
  await client.closed;
  const text = client.pending.toString();
  expect(text.endsWith(LAST_CHUNK), 'an end as of a whole answer').to.equal(false);
  return text.slice(text.indexOf('\r\n\r\n') + 4);
}

/** The content of complete chunks, none of which is the last one. What arrives at once may be joined to one chunk. */
function joined(text: string): string {
  let content = '';
  for (let rest = text; rest !== '';) {
    const size = Number.parseInt(rest, 16);
    const begin = rest.indexOf('\r\n') + 2;
    expect(size).to.be.above(0);
    expect(rest.slice(begin + size, begin + size + 2)).to.equal('\r\n');
    content += rest.slice(begin, begin + size);
    rest = rest.slice(begin + size + 2);
  }
  return content;
}

describe('a response that is cut', () => {
  const scene = ProxyFixture.forSuite({ REQUEST_TIMEOUT: '60s', HTTP_CACHE_ENABLED: 'true' });
  afterEach(() => setProject(scene, true));

  const CUTS: Record<string, { act: (at: ProxyFixture) => unknown; error: object; outcome: string }> = {
    'its token is revoked': { act: revoke, error: REVOKED, outcome: 'revoked' },
    "all its project's tokens are": {
      act: ({ daemon, project }) => daemon.manage('POST', `/manage/projects/${project.id}/tokens/revoke`),
      error: REVOKED,
      outcome: 'revoked',
    },
    'its project is deactivated': {
      act: (at) => setProject(at, false),
      error: { message: 'project is inactive', type: 'permission_error', code: 'project_inactive' },
      outcome: 'revoked',
    },
    'the provider is silent for REQUEST_TIMEOUT': {
      act: ({ daemon }) => {
        daemon.clock.advance(60_000);
      },
      error: { message: 'upstream timed out', type: 'server_error', code: 'upstream_timeout' },
      outcome: 'timeout',
    },
  };
  for (const [what, { act, error, outcome }] of Object.entries(CUTS)) {
    it(`an event stream gets an extra event with the reason when ${what}, and does not end as if it were complete`, async () => {
      const { client } = await inTheMiddle(scene, ['data: 1\n\n', 'data: 2\n\n'], OPENAI);
      await act(scene);
      const event = `data: ${JSON.stringify({ error })}\n\n`;
      expect(joined(await cutAnswer(client))).to.equal(`data: 1\n\ndata: 2\n\n${event}`);
      await scene.aborted();
      expect(await scene.onlyRecord()).to.include({ outcome, status: 200 });
    });
  }

  it('has the reason in the plain format for other clients', async () => {
    const { client } = await inTheMiddle(scene, ['data: 1\n\n'], { 'X-Request-ID': 'mine' });
    await revoke(scene);
    const event = 'data: {"error":"token revoked","code":"token_revoked","request_id":"mine"}\n\n';
    expect(await cutAnswer(client)).to.equal(chunk('data: 1\n\n') + chunk(event));
  });

  it("has the reason as an error event of Anthropic's API", async () => {
    const fields = { 'X-Request-ID': 'mine', 'Anthropic-Version': '2023-06-01', 'X-Stainless-Lang': 'js' };
    const { client } = await inTheMiddle(scene, ['event: ping\ndata: {"type":"ping"}\n\n'], fields);
    await revoke(scene);
    const error = { type: 'error', error: { type: 'authentication_error', message: 'token revoked' } };
    const data = JSON.stringify({ ...error, code: 'token_revoked', request_id: 'mine' });
    expect(await cutAnswer(client)).to.include(chunk(`event: error\ndata: ${data}\n\n`));
  });

  it("has the reason as a bare error of Google's APIs", async () => {
    const { client } = await inTheMiddle(scene, ['data: {}\r\n\r\n'], { 'X-Goog-Api-Key': 'x' });
    await setProject(scene, false);
    const last = (await cutAnswer(client)).split('\r\n').at(-2) ?? '';
    const { error } = JSON.parse(last) as { error: Record<string, unknown> };
    expect(error).to.include({ code: 403, message: 'project is inactive', status: 'PERMISSION_DENIED' });
  });

  for (const [what, pieces] of [
    ['CRLF', ['data: 1\r\n\r', '\n']],
    ['CR', ['data: 1\r\r']],
    ['a comment', [': keep-alive\n\n']],
  ] as const) {
    it(`recognises the end of an event by ${what}`, async () => {
      const { client } = await inTheMiddle(scene, pieces, OPENAI);
      await revoke(scene);
      expect(await cutAnswer(client)).to.include('"code":"token_revoked"');
    });
  }

  it('has the reason also before the first event', async () => {
    const { client } = await inTheMiddle(scene, [], OPENAI);
    await revoke(scene);
    expect(await cutAnswer(client)).to.equal(chunk(`data: ${JSON.stringify({ error: REVOKED })}\n\n`));
  });

  for (const [what, sent, fields] of [
    ['in the middle of an event', ['data: 1\n\n', 'data: 2\n'], {}],
    ['in the middle of a line', ['data: 1\n\n', 'data: {"a":'], {}],
    ['of a compressed stream', ['data: 1\n\n'], { 'Content-Encoding': 'gzip' }],
    ['of a stream with a declared length', ['data: 1\n\n'], { 'Content-Length': '1000' }],
    ['of another content type', ['data: 1\n\n'], { 'Content-Type': 'text/plain' }],
  ] as const) {
    it(`is cut without a notice ${what}`, async () => {
      const { client } = await inTheMiddle(scene, sent, OPENAI, fields);
      await revoke(scene);
      const text = await cutAnswer(client);
      expect('Content-Length' in fields ? text : joined(text)).to.equal(sent.join(''));
    });
  }

  it('is cut without a notice if the provider broke it off', async () => {
    const { client, upstream } = await inTheMiddle(scene, ['data: 1\n\n'], OPENAI);
    upstream.destroy();
    expect(await cutAnswer(client)).to.equal(chunk('data: 1\n\n'));
  });

  it('all requests that wait for the same response get the notice, and nothing is cached', async () => {
    const streams: ServerResponse[] = [];
    scene.provider.answer = (_req, res) => {
      streams.push(res);
    };
    const ask = () => scene.client(head('GET /v1/models', scene.secret, OPENAI));
    const clients = [await ask(), await ask(), await ask()];
    await scene.inFlight(3);
    // Each request is forwarded separately once the response turns out to be a stream.
    while (streams.length > 0 || clients.some(({ pending }) => !pending.includes('data: 1\n\n'))) {
      streams.shift()?.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await revoke(scene);
    for (const client of clients) {
      expect(await cutAnswer(client)).to.equal(
        chunk('data: 1\n\n') + chunk(`data: ${JSON.stringify({ error: REVOKED })}\n\n`),
      );
    }
  });

  it('coalesced requests are refused in the error format of their client', async () => {
    scene.provider.answer = () => undefined;
    const fields = { ...OPENAI, 'X-Of': 'the-same' };
    const clients = [];
    for (let i = 0; i < 3; i++) clients.push(await scene.client(head('GET /v1/models?same', scene.secret, fields)));
    await scene.inFlight(3);
    await revoke(scene);
    for (const client of clients) {
      const answer = await client.response();
      expect(answer.status).to.equal(401);
      expect(answer.json.error).to.include({ code: 'unauthorized', type: 'authentication_error' });
      expect(answer.header('www-authenticate')).to.include('error_description="revoked"');
    }
  });

  it('reports a shutdown of the daemon as the reason', async () => {
    const own = await ProxyFixture.open();
    const { client } = await inTheMiddle(own, ['data: 1\n\n'], OPENAI);
    await own.daemon.stop();
    const error = { message: 'the proxy is shutting down', type: 'server_error', code: 'unavailable' };
    expect(await cutAnswer(client)).to.equal(chunk('data: 1\n\n') + chunk(`data: ${JSON.stringify({ error })}\n\n`));
    await own.provider.stop();
  });
});

describe('a WebSocket that is cut', () => {
  const { scene, realtime } = Realtime.forSuite();
  afterEach(() => setProject(scene, true));

  const begin = () => realtime.begin(scene.daemon.url, scene.secret);

  for (const [what, act, reason] of [
    ['its token is revoked', revoke, 'token revoked'],
    ['its project is deactivated', (at: ProxyFixture) => setProject(at, false), 'project is inactive'],
  ] as const) {
    it(`is closed with 1008 and the reason when ${what}`, async () => {
      const { client, socket } = await begin();
      socket.send('x'.repeat(70_000));
      await once(client, 'message');
      const closed = once(client, 'close');
      const closedThere = once(socket, 'close');
      await act(scene);
      const [code, why] = (await closed) as [number, Buffer];
      expect([code, why.toString()]).to.deep.equal([1008, reason]);
      await closedThere;
      expect(await scene.onlyRecord()).to.include({ outcome: 'revoked', status: 101 });
    });
  }

  it('is closed with 1001 when the daemon stops', async () => {
    const own = await ProxyFixture.open();
    const there = new Realtime(own.provider);
    const { client } = await there.begin(own.daemon.url, own.secret);
    const closed = once(client, 'close');
    await own.daemon.stop();
    const [code, why] = (await closed) as [number, Buffer];
    expect([code, why.toString()]).to.deep.equal([1001, 'the proxy is shutting down']);
    there.close();
    await own.provider.stop();
  });

  it('is broken off without a notice in the middle of a frame', async () => {
    const { client, socket } = await begin();
    const { _socket: raw } = socket as unknown as { _socket: ReturnType<typeof connect> };
    const { _socket: arriving } = client as unknown as { _socket: ReturnType<typeof connect> };
    const before = arriving.bytesRead;
    raw.write(Buffer.from([0x82, 0x7e, 0x01, 0x00, 1, 2, 3]));
    await eventually('half a frame has passed', () => arriving.bytesRead === before + 7);
    const closed = once(client, 'close');
    await revoke(scene);
    expect((await closed)[0]).to.equal(1006);
  });

  it('is closed after two seconds, even if its client does not read or respond', async () => {
    const { client } = await begin();
    client.pause();
    await revoke(scene);
    expect(await scene.onlyRecord()).to.include({ outcome: 'revoked' });
    const connections = () => scene.daemon.daemon.server.getConnections.bind(scene.daemon.daemon.server);
    const open = () =>
      new Promise<number>((resolve) => {
        connections()((_error, count) => {
          resolve(count);
        });
      });
    const before = await open();
    scene.daemon.clock.advance(2_000);
    await eventually('its connection is gone', async () => (await open()) < before);
    client.terminate();
  });
});

describe('message boundaries', () => {
  it('events end with an empty line, wherever chunks are split', () => {
    for (const end of ['\n', '\r', '\r\n']) {
      const text = `${end}: c${end}${end}data: 1${end}data: 2${end}${end}`;
      for (let cut = 1; cut < text.length; cut++) {
        const boundary = new EventBoundary();
        for (const piece of [text.slice(0, cut), '', text.slice(cut)]) {
          boundary.read(Buffer.from(piece));
          if (piece === '') {
            const isEnd = /(?:^|\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)$/.test(text.slice(0, cut));
            expect(boundary.isReached, JSON.stringify(text.slice(0, cut))).to.equal(isEnd);
          }
        }
        expect(boundary.isReached).to.equal(true);
      }
    }
  });
});
