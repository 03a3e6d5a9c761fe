import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { CLOSED_UNANSWERED, expectRefusal, UNREACHABLE } from '../support/refusals.js';
import { head, chunk, LAST_CHUNK, type RawAnswer } from '../support/raw.js';
import { staged } from './support/stage.js';
import type { Exchange } from './support/upstream.js';

describe('C: an upstream that closes an idle connection just as a request goes out on it', () => {
  const { stage, it } = staged();

  /** What is answered to `bytes`, and what reached the upstream, if every connection that carried a request before does `onReuse`. */
  async function askOnReused(
    bytes: string,
    onReuse: (exchange: Exchange) => void,
    onFresh: (exchange: Exchange) => void = (exchange) => {
      exchange.answer();
    },
  ): Promise<{ answer: RawAnswer; exchanges: Exchange[] }> {
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
      it(`C07 is asked once more, on a fresh connection: ${what}, when it ${closes.name}`, async () => {
        const { answer, exchanges } = await askOnReused(bytes(), closes);
        expect(answer.status).to.equal(200);
        const [first, second] = exchanges;
        expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true, false]);
        expect(second!.bytes.toString()).to.equal(first!.bytes.toString()).and.not.equal('');
        expect(await stage.uses(), 'the one before, and this one').to.equal(2);
      });
    }
  }

  it('C07 is not asked a third time: 502', async () => {
    const { answer, exchanges } = await askOnReused(stage.get(), ends, ends);
    expectRefusal(answer, UNREACHABLE);
    expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true, false]);
    expect(await stage.uses()).to.equal(2);
  });

  it('C07 is not asked again once it has sent a byte: 502', async () => {
    const { answer, exchanges } = await askOnReused(stage.get(), (exchange) => {
      exchange.send('H');
      exchange.fin();
    });
    expectRefusal(answer, UNREACHABLE);
    expect(exchanges).to.have.lengthOf(1);
  });

  it('C07 is not asked again for a client that has left', async () => {
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
    'GET with a body that streams': () =>
      head('GET /v1/models', stage.secret, { 'Transfer-Encoding': 'chunked' }) + chunk('hello') + LAST_CHUNK,
  };
  for (const [what, bytes] of Object.entries(NOT_REPEATED)) {
    for (const closes of [ends, resets]) {
      it(`C08 is never asked again, and its client is told that it may have been received: ${what}, when it ${closes.name} (finding D6)`, async () => {
        const { answer, exchanges } = await askOnReused(bytes(), closes);
        expectRefusal(answer, CLOSED_UNANSWERED);
        expect(exchanges.map(({ isReused }) => isReused)).to.deep.equal([true]);
        expect(await stage.uses(), 'counted all the same').to.equal(2);
      });
    }
  }
});

describe('C: an upstream that closes idle connections without notice', () => {
  // It stands still: then the limits are exact.
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({ clock });

  const LIMITS: [said: string, lastsMs: number][] = [
    ['', 4_000],
    ['Keep-Alive: max=100\r\n', 4_000],
    ['Keep-Alive: timeout=3\r\n', 2_000],
    ['keep-alive: max=5, Timeout=20\r\n', 19_000],
  ];
  for (const [said, lastsMs] of LIMITS) {
    it(`C08 gets no request on a connection that was idle for more than ${lastsMs} ms (${said.trim() || 'it says nothing'}) (finding D6)`, async () => {
      stage.upstream.script = async (exchange) => {
        await exchange.whole();
        exchange.answer(200, said);
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
