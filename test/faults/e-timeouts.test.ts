import { expect } from 'chai';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { seededRandom } from '../support/model.js';
import { chunk, LAST_CHUNK, type RawClient } from '../support/raw.js';
import { expectRefusal, REQUEST_TIMEOUT, UNREACHABLE, UPSTREAM_TIMEOUT } from '../support/refusals.js';
import { staged } from './support/stage.js';
import type { Exchange } from './support/upstream.js';

const SECOND_MS = 1000;
// How many turns of the event loop the answer has on its way before the time is up; at last as many as it needs.
const TURNS = Array.from({ length: 40 }, (_, turns) => turns);

describe('E: time that is up just as something happens', () => {
  const { stage, it } = staged({ env: { REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s' } });
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n';

  /**
   * What a client has to show once all is over: one answer, or one that is cut, and never a word behind it.
   *
   * @returns the status, or "cut".
   */
  async function onlyAnswer(client: RawClient): Promise<number | 'cut'> {
    const answer = await client.answer().catch(() => null);
    if (!answer) {
      expect(client.pending.toString().match(/HTTP\/1\.1 /g) ?? [], 'status lines').to.have.lengthOf(1);
      return 'cut';
    }
    if (answer.status === 504) expectRefusal(answer, UPSTREAM_TIMEOUT);
    if (answer.status === 408) expectRefusal(answer, REQUEST_TIMEOUT);
    if (answer.status === 200) expect(answer.text).to.equal('0123456789');
    expect(client.pending.toString(), 'behind the answer').to.equal('');
    return answer.status;
  }

  /** Plays one race for each number of turns. @returns what came of them. */
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
      for (let i = 0; i < 5; i++) await turn(); // The daemon is to be done with sending, and to wait for what comes.
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

  it('E16 headers that arrive with the end of REQUEST_TIMEOUT: a 504, or an answer that is cut', async () => {
    const results = await race(
      () => stage.get(),
      ({ request }) => request.isWhole,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}01234`);
        await after(turns, client);
        timeIsUp();
      },
    );
    expect([...results]).to.have.members([504, 'cut']);
  });

  it('E16 a whole answer that arrives with the end of REQUEST_TIMEOUT: a 504, or that answer', async () => {
    const results = await race(
      () => stage.get(),
      ({ request }) => request.isWhole,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}0123456789`);
        await after(turns, client);
        timeIsUp();
      },
    );
    expect([...results]).to.have.members([504, 200]);
  });

  it('E16 headers that arrive with the end of REQUEST_TIMEOUT while a body is being sent', async () => {
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

  it('E16 a whole answer that arrives with the end of CLIENT_BODY_TIMEOUT', async () => {
    const results = await race(
      () => stage.post('', { 'Transfer-Encoding': 'chunked' }) + chunk('the beginning'),
      ({ request }) => request.body.length > 0,
      async (exchange, client, turns) => {
        exchange.send(`${HEAD}0123456789`);
        await after(turns, client);
        stage.daemon.clock.advance(30 * SECOND_MS);
      },
    );
    // Either will do, a word behind it would not. On a busy machine the answer may be first every time.
    for (const result of results) expect(result).to.be.oneOf([408, 200]);
    expect([...results]).to.include(200);
  });
});

// What they come to is in e-timeouts.long.ts, for Node's time cannot be moved.
describe('E: time that is left to Node', () => {
  const { stage, it } = staged();

  it('E09 has no limit for a whole request', () => {
    expect(stage.daemon.daemon.server.requestTimeout).to.equal(0);
    return Promise.resolve();
  });

  it('E10 lets an idle client keep its connection longer than a load balancer does, and says so', async () => {
    const answer = await stage.ask(stage.get());
    const timeoutS = Number(/^timeout=(\d+)$/.exec(answer.header('keep-alive') ?? '')?.[1]);
    expect(timeoutS).to.be.within(65, 120);
    expect(stage.daemon.daemon.server.keepAliveTimeout).to.equal(timeoutS * SECOND_MS);
  });
});

describe('E: connections to the upstream that are kept', () => {
  const { stage, it } = staged();

  const answering = (fields: string) => async (exchange: Exchange) => {
    await exchange.whole();
    exchange.answer(200, fields);
  };

  it('E11 are closed by us before the upstream would, when it says how long it keeps them', async () => {
    stage.upstream.script = answering('Keep-Alive: timeout=3\r\n');
    for (let i = 0; i < 2; i++) expect((await stage.ask(stage.post('{}'))).status).to.equal(200);
    const [first, second] = stage.upstream.exchanges;
    expect(second!.socket, 'the connection of the second').to.equal(first!.socket);
    await second!.closed(3 * SECOND_MS);
  });

  for (const timeout of [0, 1, 2]) {
    it(`E11 are not kept when that is too short to be sure: ${timeout} s`, async () => {
      stage.upstream.script = answering(`Keep-Alive: timeout=${timeout}\r\n`);
      expect((await stage.ask(stage.post('{}'))).status).to.equal(200);
      await (await stage.upstream.only()).closed();
    });
  }

  it('E11 and closed by the upstream right behind an answer do not cost the next request anything', async () => {
    stage.upstream.script = async (exchange) => {
      await exchange.whole();
      exchange.answer();
      exchange.fin();
    };
    const client = await stage.client();
    for (let round = 1; round <= 100; round++) {
      client.send(stage.post(`{"round":${round}}`));
      expect((await client.answer()).status, `round ${round}`).to.equal(200);
    }
    expect(stage.upstream.exchanges.map(({ request }) => request.body.toString())).to.deep.equal(
      Array.from({ length: 100 }, (_, i) => `{"round":${i + 1}}`),
    );
  });

  describe('and closed by the upstream at random', () => {
    const LONGEST_PAUSE_MS = 8;

    /**
     * How many of many requests with pauses between them came to nothing, while idle connections are closed. With both
     * ends in one process many closings meet a request that is on its way.
     */
    async function failures(request: () => string): Promise<{ asked: number; failed: number }> {
      const random = seededRandom(11);
      let asked = 0;
      let failed = 0;
      stage.upstream.script = async (exchange) => {
        await exchange.whole();
        exchange.answer();
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
          const answer = await client.answer();
          asked += 1;
          if (answer.status === 200) continue;
          expectRefusal(answer, UNREACHABLE);
          failed += 1;
        }
      };
      await Promise.all(Array.from({ length: 8 }, callNowAndThen));
      return { asked, failed };
    }

    it('E11 cost no GET', async () => {
      expect(await failures(() => stage.get())).to.deep.equal({ asked: 400, failed: 0 });
    });

    it('E11 cost a POST no more than itself: 502, and it is not sent again', async () => {
      const { asked } = await failures(() => stage.post('{}'));
      expect(stage.upstream.exchanges.length).to.be.at.most(asked);
    });
  });
});
