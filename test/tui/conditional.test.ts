import { inspect } from 'node:util';
import { expect } from 'chai';
import { conditionalFetch } from '../../tui/effects/conditional-fetch.js';

const LIST = 'http://127.0.0.1:8080/manage/tokens?limit=100';

describe('conditional fetch', () => {
  let requests: { url: string; init: RequestInit; ifNoneMatch: string | null }[];
  let answer: (request: { url: string; ifNoneMatch: string | null }) => Response;
  let told: Response[];

  /** A server whose responses do not change, unless a test changes them. */
  beforeEach(() => {
    requests = [];
    told = [];
    answer = ({ url, ifNoneMatch }) => {
      const etag = `"${url}"`;
      const headers = { etag, 'x-total-count': '1', date: 'Fri, 15 Jan 2027 08:00:00 GMT' };
      if (ifNoneMatch === etag) return new Response(null, { status: 304, headers });
      return new Response(`["${url}"]`, { headers: { ...headers, 'content-type': 'application/json' } });
    };
  });

  function opened(limits: { maxResponses?: number; maxBytes?: number } = {}): typeof fetch {
    const server = (input: unknown, init: RequestInit = {}) => {
      const url = String(input);
      const request = { url, init, ifNoneMatch: new Headers(init.headers).get('if-none-match') };
      requests.push(request);
      return Promise.resolve(answer(request));
    };
    return conditionalFetch({
      fetch: server,
      onResponse: (answered) => void told.push(answered),
      ...limits,
    });
  }
  const asked = () => requests.map(({ ifNoneMatch }) => ifNoneMatch !== null);

  it('revalidates a stored response, and returns it again after a 304', async () => {
    const ask = opened();
    const first = await ask(LIST);
    const again = await ask(new URL(LIST));
    expect(asked()).to.deep.equal([false, true]);
    expect([first.status, again.status]).to.deep.equal([200, 200]);
    expect(await again.json()).to.deep.equal(await first.json());
    expect(again.headers.get('content-type')).to.equal('application/json');
  });

  it('returns a new response', async () => {
    const ask = opened();
    await ask(LIST);
    answer = () => new Response('["new"]', { headers: { etag: '"new"' } });
    expect(await (await ask(LIST)).json()).to.deep.equal(['new']);
    answer = ({ ifNoneMatch }) => new Response(null, { status: ifNoneMatch === '"new"' ? 304 : 500 });
    expect(await (await ask(LIST)).json()).to.deep.equal(['new']);
  });

  it('takes headers from the 304', async () => {
    answer = ({ ifNoneMatch }) =>
      ifNoneMatch === null
        ? new Response('[]', { headers: { etag: '"1"', 'x-total-count': '10', link: '<next>', 'content-type': 'a/b' } })
        : new Response(null, { status: 304, headers: { 'x-total-count': '11' } });
    const ask = opened();
    await ask(LIST);
    const { headers } = await ask(LIST);
    expect([headers.get('x-total-count'), headers.get('link'), headers.get('content-type')]).to.deep.equal([
      '11',
      null,
      'a/b',
    ]);
  });

  it('reports each response of the daemon', async () => {
    const ask = opened();
    await ask(LIST);
    await ask(LIST);
    await ask(LIST, { method: 'POST' });
    expect(told.map(({ status }) => status)).to.deep.equal([200, 304, 200]);
  });

  it('does not store an error, and drops the response that it replaces', async () => {
    const ask = opened();
    await ask(LIST);
    answer = () => new Response('{"error":"no"}', { status: 503, headers: { etag: '"error"' } });
    expect((await ask(LIST)).status).to.equal(503);
    await ask(LIST);
    expect(asked()).to.deep.equal([false, true, false]);
  });

  it('passes errors on, and keeps stored responses', async () => {
    const ask = opened();
    await ask(LIST);
    const before = answer;
    answer = () => {
      throw new TypeError('fetch failed');
    };
    const failure = await ask(LIST).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(TypeError);
    answer = before;
    expect((await ask(LIST)).status).to.equal(200);
    expect(asked()).to.deep.equal([false, true, true]);
  });

  for (const method of ['POST', 'PATCH', 'DELETE']) {
    it(`passes ${method} through unchanged`, async () => {
      const ask = opened();
      await ask(LIST);
      const init = { method, body: '{}' };
      await ask(LIST, init);
      await ask(LIST, init);
      expect(asked()).to.deep.equal([false, false, false]);
      expect(requests[1]!.init).to.equal(init);
    });
  }

  it('passes streams through unchanged, as they arrive', async () => {
    answer = () => {
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('data: 1\n\n')); // And never ends.
        },
      });
      return new Response(stream, { headers: { etag: '"x"', 'content-type': 'text/event-stream' } });
    };
    const ask = opened();
    for (const accept of ['text/event-stream', '*/*']) {
      const { body } = await ask(LIST, { headers: { accept } });
      const { value } = await (body as ReadableStream<Uint8Array>).getReader().read();
      expect(new TextDecoder().decode(value)).to.equal('data: 1\n\n');
    }
    expect(asked()).to.deep.equal([false, false]);
  });

  it('stores a limited number of responses, those used last', async () => {
    const ask = opened({ maxResponses: 2 });
    for (const page of ['a', 'b', 'a', 'c', 'a', 'b']) await ask(`${LIST}&q=${page}`);
    expect(asked()).to.deep.equal([false, false, true, false, true, false]);
  });

  it('stores a limited number of bytes, and returns a longer body without storing it', async () => {
    const ask = opened({ maxBytes: 1_000 });
    answer = ({ url, ifNoneMatch }) => {
      if (ifNoneMatch !== null) return new Response(null, { status: 304 });
      const size = Number(new URL(url).searchParams.get('size'));
      const chunks = Array.from({ length: size / 100 }, (_, i) => `${i}`.padEnd(100));
      const stream = new ReadableStream({
        pull(controller) {
          const chunk = chunks.shift();
          if (chunk === undefined) controller.close();
          else controller.enqueue(new TextEncoder().encode(chunk));
        },
      });
      return new Response(stream, { headers: { etag: '"x"' } });
    };
    const text = async (size: number) => (await ask(`http://daemon/list?size=${size}`)).text();
    expect(await text(1_000)).to.have.length(1_000);
    expect(await text(1_000)).to.have.length(1_000);
    expect(asked()).to.deep.equal([false, true]);
    const long = await text(2_500);
    expect(long.match(/\d+/g)!.map(Number)).to.deep.equal(Array.from({ length: 25 }, (_, i) => i));
    await text(2_500);
    expect(asked().slice(2), 'too long').to.deep.equal([false, false]);
    await text(500);
    await text(600);
    await text(500);
    expect(asked().slice(4), 'no room for both').to.deep.equal([false, false, false]);
  });

  it('returns a stored response that was evicted during its revalidation', async () => {
    const ask = opened({ maxResponses: 1 });
    await ask(LIST);
    const both = [ask(LIST), ask(`${LIST}&q=other`)];
    const [first] = await Promise.all(both);
    expect(await first!.json()).to.deep.equal([LIST]);
  });

  it('stores no request headers', async () => {
    const ask = opened();
    const authorization = 'Bearer a-management-token';
    await ask('http://someone:secret-word@daemon/list', { headers: { authorization } });
    await ask('http://daemon/list', { headers: { authorization } });
    expect(asked()).to.deep.equal([false, true]);
    expect(new Headers(requests[1]!.init.headers).get('authorization')).to.equal(authorization);
    expect(inspect(ask, { depth: 10, showHidden: true })).not.to.include('management-token');
  });

  it('passes on an abort', async () => {
    const ask = opened();
    const { signal } = new AbortController();
    await ask(LIST, { signal, redirect: 'error' });
    expect(requests[0]!.init).to.include({ signal, redirect: 'error' });
  });
});
