import { expect } from 'chai';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { seededRandom } from '../support/model.js';
import { chunk, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, REQUEST_TIMEOUT, UNREACHABLE, UPSTREAM_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1000;
// The number of turns of the event loop between the response and the timeout; the last ones are as many as it needs.
const TURNS = Array.from({ length: 40 }, (_, turns) => turns);

describe('E: a timeout at the same moment as an event', () => {
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s' } });
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n';

  /** Checks what the client received: one response, or a cut one, and no byte after it. @returns the status, or "cut". */
  async function onlyAnswer(client: RawClient): Promise<number | 'cut'> {
    const answer = await client.response().catch(() => null);
    if (!answer) {
      expect(client.pending.toString().match(/HTTP\/1\.1 /g) ?? [], 'status lines').to.have.lengthOf(1);
      return 'cut';
    }
    if (answer.status === 504) expectRefusal(answer, UPSTREAM_TIMEOUT);
    if (answer.status === 408) expectRefusal(answer, REQUEST_TIMEOUT);
    if (answer.status === 200) expect(answer.text).to.equal('0123456789');
    expect(client.pending.toString(), 'bytes after the response').to.equal('');
    return answer.status;
  }

  /** Runs one race for each number of turns. @returns the results. */
  async function race(
    request: () => string,
    isReady: (exchange: Exchange) => boolean,
    strike: (exchange: Exchange, client: RawClient, turns: number) => Promise<void>,
  ): Promise<Set<number | 'cut'>> {
    const results = new Set<number | 'cut'>();
    stage.upstream.script = () => undefined;
    for (const turns of TURNS) {
      const client = await stage.client(request());
      await eventually('it is at the upstream', () => stage.upstream.exchanges.length > turns);
      const exchange = stage.upstream.exchanges[turns]!;
      await eventually('it is as far as it should be', () => isReady(exchange));
      for (let i = 0; i < 5; i++) await turn(); // The daemon must have finished sending and wait for what arrives.
      await strike(exchange, client, turns);
      results.add(await onlyAnswer(client));
      client.destroy();
      await stage.inFlight(0);
    }
    expect(stage.daemon.ended, 'outcomes').to.have.lengthOf(TURNS.length);
    return results;
  }

  const after = async (turns: number, client: RawClient) => {
    for (let i = 0; i < turns; i++) await turn();
    if (turns === TURNS.at(-1)) await client.seen('HTTP/1.1 200');
  };
  const timeIsUp = () => {
    stage.daemon.clock.advance(60 * SECOND_MS);
  };

  it('E16 response headers arrive as REQUEST_TIMEOUT ends: a 504, or a response that is cut', async () => {
    const results = await race(
      () => stage.get(),
      ({ request }) => request.isComplete,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}01234`);
        await after(turns, client);
        timeIsUp();
      },
    );
    expect([...results]).to.have.members([504, 'cut']);
  });

  it('E16 a whole response arrives as REQUEST_TIMEOUT ends: a 504, or that response', async () => {
    const results = await race(
      () => stage.get(),
      ({ request }) => request.isComplete,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}0123456789`);
        await after(turns, client);
        timeIsUp();
      },
    );
    expect([...results]).to.have.members([504, 200]);
  });

  it('E16 response headers arrive as REQUEST_TIMEOUT ends and a body is being sent: exactly one response', async () => {
    const results = await race(
      () => stage.post('', { 'Transfer-Encoding': 'chunked' }) + chunk('the beginning'),
      ({ request }) => request.body.length > 0,
      async (exchange, client, turns) => {
        client.send(chunk('more') + LAST_CHUNK);
        exchange.send(`${HEAD}01234`);
        await after(turns, client);
        timeIsUp();
      },
    );
    for (const result of results) expect(result).to.be.oneOf([408, 504, 'cut']);
    expect([...results]).to.include('cut');
  });

  it('E16 a whole response arrives as CLIENT_BODY_TIMEOUT ends: exactly one response', async () => {
    const results = await race(
      () => stage.post('', { 'Transfer-Encoding': 'chunked' }) + chunk('the beginning'),
      ({ request }) => request.body.length > 0,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}0123456789`);
        await after(turns, client);
        stage.daemon.clock.advance(30 * SECOND_MS);
      },
    );
    // Either result is correct, but nothing may follow it. On a busy machine the response may always be first.
    for (const result of results) expect(result).to.be.oneOf([408, 200]);
    expect([...results]).to.include(200);
  });
});

// e-timeouts.long.ts shows these timeouts in real time, because a test cannot move Node's timers.
describe("E: Node's own timeouts", () => {
  const { stage, it } = staged();

  it('E09 a whole request has no time limit', () => {
    expect(stage.daemon.daemon.server.requestTimeout).to.equal(0);
    return Promise.resolve();
  });
});

describe('E: idle connections to the upstream', () => {
  const { stage, it } = staged();

  const answering = (fields: string) => async (exchange: Exchange) => {
    await exchange.whole();
    exchange.respond(200, fields);
  };

  it('E11 an idle connection is closed by the daemon before the upstream closes it, when the upstream states its timeout', async () => {
    stage.upstream.script = answering('Keep-Alive: timeout=3\r\n');
    for (let i = 0; i < 2; i++) expect((await stage.ask(stage.post('{}'))).status).to.equal(200);
    const [first, second] = stage.upstream.exchanges;
    expect(second!.socket, "the second request's connection").to.equal(first!.socket);
    await second!.closed(3 * SECOND_MS);
  });

  for (const timeout of [0, 1, 2]) {
    it(`E11 a connection is not reused when its stated timeout is too short to be safe: ${timeout} s`, async () => {
      stage.upstream.script = answering(`Keep-Alive: timeout=${timeout}\r\n`);
      expect((await stage.ask(stage.post('{}'))).status).to.equal(200);
      await (await stage.upstream.only()).closed();
    });
  }

  it('E11 a connection that the upstream closes right after a response does not affect the next request', async () => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.respond();
      exchange.fin();
    };
    const client = await stage.client();
    for (let round = 1; round <= 100; round++) {
      client.send(stage.post(`{"round":${round}}`));
      expect((await client.response()).status, `round ${round}`).to.equal(200);
    }
    expect(stage.upstream.exchanges.map(({ request }) => request.body.toString())).to.deep.equal(
      Array.from({ length: 100 }, (_, i) => `{"round":${i + 1}}`),
    );
  });

  describe('that the upstream closes at random moments', () => {
    const LONGEST_PAUSE_MS = 8;

    /**
     * The number of requests that failed, of many with pauses between them, while idle connections are closed. With both ends in one
     * process, many closings meet a request that is on its way.
     */
    async function failures(request: () => string): Promise<{ asked: number; failed: number }> {
      const random = seededRandom(11);
      let asked = 0;
      let failed = 0;
      stage.upstream.script = async (exchange) => {
        await exchange.whole();
        exchange.respond();
        setTimeout(() => {
          const isIdle = stage.upstream.exchanges.findLast(({ socket }) => socket === exchange.socket) === exchange;
          if (isIdle) exchange.fin();
        }, random() * LONGEST_PAUSE_MS);
      };
      const callNowAndThen = async () => {
        const client = await stage.client();
        for (let i = 0; i < 50; i++) {
          await sleep(random() * LONGEST_PAUSE_MS);
          client.send(request());
          const answer = await client.response();
          asked += 1;
          if (answer.status === 200) continue;
          expectRefusal(answer, UNREACHABLE);
          failed += 1;
        }
      };
      await Promise.all(Array.from({ length: 8 }, callNowAndThen));
      return { asked, failed };
    }

    it('E11 random closings of idle connections: no GET fails', async () => {
      expect(await failures(() => stage.get())).to.deep.equal({ asked: 400, failed: 0 });
    });

    it('E11 random closings of idle connections: a POST may fail with 502, and is not sent again', async () => {
      const { asked } = await failures(() => stage.post('{}'));
      expect(stage.upstream.exchanges.length).to.be.at.most(asked);
    });
  });
});
