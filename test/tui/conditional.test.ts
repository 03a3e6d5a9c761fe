import { inspect } from 'node:util';
import { expect } from 'chai';
import { type Answered, conditionalFetch } from '../../tui/effects/conditional.js';

const LIST = 'http://127.0.0.1:8080/manage/tokens?limit=100';

describe('a conditional fetch', () => {
  let requests: { url: string; init: RequestInit; ifNoneMatch: string | null }[];
  let answer: (request: { url: string; ifNoneMatch: string | null }) => Response;
  let told: Answered[];
  let now: number;

  /** A server whose lists do not change, unless a test says otherwise. */
  beforeEach(() => {
    requests = [];
    told = [];
    now = 1_800_000_000_000;
    answer = ({ url, ifNoneMatch }) => {
      const etag = `"${url}"`;
      const headers = { etag, 'x-total-count': '1', date: 'Fri, 15 Jan 2027 08:00:00 GMT' };
      if (ifNoneMatch === etag) return new Response(null, { status: 304, headers });
      return new Response(`["${url}"]`, { headers: { ...headers, 'content-type': 'application/json' } });
    };
  });

  function opened(limits: { mostAnswers?: number; mostBytes?: number } = {}): typeof fetch {
    const server = (input: unknown, init: RequestInit = {}) => {
      const url = String(input);
      const request = { url, init, ifNoneMatch: new Headers(init.headers).get('if-none-match') };
      requests.push(request);
      now += 7;
      return Promise.resolve(answer(request));
    };
    const clock = { now: () => now, monotonic: () => now };
    return conditionalFetch({
      fetch: server,
      clock,
      onAnswer: (answered) => void told.push(answered),
      ...limits,
    });
  }
  const asked = () => requests.map(({ ifNoneMatch }) => ifNoneMatch !== null);

  it('asks whether what it was answered still holds, and gives it again if so', async () => {
    const ask = opened();
    const first = await ask(LIST);
    const again = await ask(new URL(LIST));
    expect(asked()).to.deep.equal([false, true]);
    expect([first.status, again.status]).to.deep.equal([200, 200]);
    expect(await again.json()).to.deep.equal(await first.json());
    expect(again.headers.get('content-type')).to.equal('application/json');
  });

  it('gives what is new when it is', async () => {
    const ask = opened();
    await ask(LIST);
    answer = () => new Response('["new"]', { headers: { etag: '"new"' } });
    expect(await (await ask(LIST)).json()).to.deep.equal(['new']);
    answer = ({ ifNoneMatch }) => new Response(null, { status: ifNoneMatch === '"new"' ? 304 : 500 });
    expect(await (await ask(LIST)).json()).to.deep.equal(['new']);
  });

  it('takes the headers of what has not changed from the newer answer', async () => {
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

  it('tells of each answer when it came, when it was sent, how long it took, and whether anything was new', async () => {
    const ask = opened();
    await ask(LIST);
    await ask(LIST);
    await ask(LIST, { method: 'POST' });
    const dateMs = Date.parse('2027-01-15T08:00:00Z');
    expect(told).to.deep.equal([
      { atMs: 1_800_000_000_007, dateMs, status: 200, notModified: false, durationMs: 7 },
      { atMs: 1_800_000_000_014, dateMs, status: 304, notModified: true, durationMs: 7 },
      { atMs: 1_800_000_000_021, dateMs, status: 200, notModified: false, durationMs: 7 },
    ]);
    answer = () => new Response('no', { status: 503 });
    await ask(LIST);
    expect(told.at(-1)).to.include({ status: 503, dateMs: null, notModified: false });
  });

  it('remembers no error, and forgets what it replaced', async () => {
    const ask = opened();
    await ask(LIST);
    answer = () => new Response('{"error":"no"}', { status: 503, headers: { etag: '"error"' } });
    expect((await ask(LIST)).status).to.equal(503);
    await ask(LIST);
    expect(asked()).to.deep.equal([false, true, false]);
  });

  it('throws what asking throws, and remembers on', async () => {
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
    it(`lets ${method} pass untouched`, async () => {
      const ask = opened();
      await ask(LIST);
      const init = { method, body: '{}' };
      await ask(LIST, init);
      await ask(LIST, init);
      expect(asked()).to.deep.equal([false, false, false]);
      expect(requests[1]!.init).to.equal(init);
    });
  }

  it('lets streams pass untouched, as they come', async () => {
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

  it('remembers so many answers, those that were used last', async () => {
    const ask = opened({ mostAnswers: 2 });
    for (const page of ['a', 'b', 'a', 'c', 'a', 'b']) await ask(`${LIST}&q=${page}`);
    expect(asked()).to.deep.equal([false, false, true, false, true, false]);
  });

  it('remembers so many bytes, and gives what is longer whole without remembering it', async () => {
    const ask = opened({ mostBytes: 1_000 });
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

  it('gives the answer to a question that is let go while it is on its way', async () => {
    const ask = opened({ mostAnswers: 1 });
    await ask(LIST);
    const both = [ask(LIST), ask(`${LIST}&q=other`)];
    const [first] = await Promise.all(both);
    expect(await first!.json()).to.deep.equal([LIST]);
  });

  it('keeps nothing of who asked', async () => {
    const ask = opened();
    const authorization = 'Bearer a-management-token';
    await ask('http://someone:secret-word@daemon/list', { headers: { authorization } });
    await ask('http://daemon/list', { headers: { authorization } });
    expect(asked()).to.deep.equal([false, true]);
    expect(new Headers(requests[1]!.init.headers).get('authorization')).to.equal(authorization);
    expect(inspect(ask, { depth: 10, showHidden: true })).not.to.include('management-token');
  });

  it('passes on that nobody waits any more', async () => {
    const ask = opened();
    const { signal } = new AbortController();
    await ask(LIST, { signal, redirect: 'error' });
    expect(requests[0]!.init).to.include({ signal, redirect: 'error' });
  });
});
