import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { CLOSED_UNANSWERED, expectRefusal, UNREACHABLE } from '../support/refusals.js';
import { head, chunk, LAST_CHUNK, type RawResponse } from '../support/raw.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

describe('C: an upstream that closes an idle connection just as a request is sent on it', () => {
  const { stage, it } = staged();

  /** The response to `bytes`, and the requests that reached the upstream, if every reused connection does `onReuse`. */
  async function askOnReused(
    bytes: string,
    onReuse: (exchange: Exchange) => void,
    onFresh: (exchange: Exchange) => void = (exchange) => {
      exchange.respond();
    },
  ): Promise<{ answer: RawResponse; exchanges: Exchange[] }> {
    expect((await stage.ask(stage.get())).status).to.equal(200);
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      (exchange.isReused ? onReuse : onFresh)(exchange);
    };
    const answer = await stage.ask(bytes, /^\S+/.exec(bytes)?.[0]);
    return { answer, exchanges: stage.upstream.exchanges.slice(1) };
  }
  const ends = (exchange: Exchange) => {
    exchange.fin();
  };
  const resets = (exchange: Exchange) => {
    exchange.rst();
  };

  const HELD = { 'Content-Length': '5' };
  const REPEATED: Record<string, () => string> = {
    GET: () => stage.get({ 'X-Mine': 'a' }),
    HEAD: () => head('HEAD /v1/models', stage.secret),
    'GET with a small body': () => head('GET /v1/models', stage.secret, HELD) + 'hello',
  };
  for (const [what, bytes] of Object.entries(REPEATED)) {
    for (const closes of [ends, resets]) {
      it(`C07 ${what} on a connection that the upstream ${closes.name}: one retry on a new connection`, async () => {
        const { answer, exchanges } = await askOnReused(bytes(), closes);
        expect(answer.status).to.equal(200);
        const [first, second] = exchanges;
        expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true, false]);
        expect(second!.bytes.toString()).to.equal(first!.bytes.toString()).and.not.equal('');
        expect(await stage.uses(), 'the previous one and this one').to.equal(2);
      });
    }
  }

  it('C07 a request is not sent a third time: 502', async () => {
    const { answer, exchanges } = await askOnReused(stage.get(), ends, ends);
    expectRefusal(answer, UNREACHABLE);
    expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true, false]);
    expect(await stage.uses()).to.equal(2);
  });

  it('C07 a request is not retried after the upstream sent a byte: 502', async () => {
    const { answer, exchanges } = await askOnReused(stage.get(), (exchange) => {
      exchange.send('H');
      exchange.fin();
    });
    expectRefusal(answer, UNREACHABLE);
    expect(exchanges).to.have.lengthOf(1);
  });

  it('C07 a request is not retried after its client disconnected', async () => {
    let close: () => void = () => undefined;
    expect((await stage.ask(stage.get())).status).to.equal(200);
    stage.upstream.script = (exchange) => {
      close = () => {
        exchange.fin();
      };
    };
    const client = await stage.client(stage.get());
    await eventually('the request is at the upstream', () => stage.upstream.exchanges.length === 2);
    client.destroy();
    close();
    await stage.inFlight(0);
    expect(stage.upstream.exchanges).to.have.lengthOf(2);
  });

  const NOT_REPEATED: Record<string, () => string> = {
    ...Object.fromEntries(
      ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [
        method,
        () => head(`${method} /v1/echo`, stage.secret, HELD) + 'hello',
      ]),
    ),
    'DELETE without a body': () => head('DELETE /v1/files/a', stage.secret),
    'GET with a streamed body': () =>
      head('GET /v1/models', stage.secret, { 'Transfer-Encoding': 'chunked' }) + chunk('hello') + LAST_CHUNK,
  };
  for (const [what, bytes] of Object.entries(NOT_REPEATED)) {
    for (const closes of [ends, resets]) {
      it(`C08 ${what} on a connection that the upstream ${closes.name}: no retry, and the client is told that it may have been received`, async () => {
        const { answer, exchanges } = await askOnReused(bytes(), closes);
        expectRefusal(answer, CLOSED_UNANSWERED);
        expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true]);
        expect(await stage.uses(), 'counted nevertheless').to.equal(2);
      });
    }
  }
});

describe('C: an upstream that closes idle connections without notice', () => {
  // The clock stands still, so the limits are exact.
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ clock });

  const LIMITS: [said: string, lastsMs: number][] = [
    ['', 4_000],
    ['Keep-Alive: max=100\r\n', 4_000],
    ['Keep-Alive: timeout=3\r\n', 2_000],
    ['keep-alive: max=5, Timeout=20\r\n', 19_000],
  ];
  for (const [said, lastsMs] of LIMITS) {
    it(`C08 a connection that was idle for more than ${lastsMs} ms is not reused (${said.trim() || 'no Keep-Alive header'})`, async () => {
      stage.upstream.script = async (exchange) => {
        await exchange.whole();
        exchange.respond(200, said);
      };
      const idleFor = [0, lastsMs, lastsMs + 1, lastsMs, lastsMs + 60_000];
      for (const ms of idleFor) {
        clock.advance(ms);
        expect((await stage.ask(stage.post('{}'))).status).to.equal(200);
      }
      const reused = stage.upstream.exchanges.map(({ isReused }) => isReused);
      expect(reused).to.deep.equal([false, true, false, true, false]);
    });
  }
});
