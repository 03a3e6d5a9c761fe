/** Identical requests at the same time: one goes upstream, the others wait for its response, and none fails because of another. */
import { expect } from 'chai';
import { TestClock } from '../support/clock.js';
import { eventually } from '../support/eventually.js';
import { type Fields, head, type RawResponse, type RawClient } from '../support/raw.js';
import { expectRefusal, LIMIT_REACHED, UNAUTHORIZED } from '../support/refusals.js';
import { staged } from './support/fault-fixture.js';
import type { Exchange } from './support/upstream.js';

const REQUEST_TIMEOUT_MS = 60_000;
const FRESH = 'Cache-Control: max-age=600\r\n';
const LARGE = 16 * 1024 * 1024;

describe('G: identical requests at the same time', function () {
  this.timeout(60_000);
  const clock = new TestClock({ standsStill: true });
  const { stage, it } = staged({
    env: {
      HTTP_CACHE_ENABLED: 'true',
      HTTP_CACHE_MAX_OBJECT_BYTES: String(2 * LARGE),
      REQUEST_TIMEOUT: `${REQUEST_TIMEOUT_MS}ms`,
      UPSTREAM_CONNECTIONS: '4',
    },
    clock,
  });

  const cacheOf = (answer: RawResponse) => answer.header('x-proxy-cache');
  let cases = 0;
  let target = '';
  /** The exchanges that the script has not responded to yet, in order of arrival. */
  let waiting: Exchange[] = [];
  const hold = () => {
    target = `/v1/together/${++cases}`;
    waiting = [];
    stage.upstream.script = (exchange) => {
      waiting.push(exchange);
    };
  };
  const asked = (count: number) =>
    eventually(`${count} requests at the upstream`, () => stage.upstream.exchanges.length === count);
  const answerAll = (fields = FRESH) => {
    for (const exchange of waiting.splice(0)) exchange.respond(200, fields, `answer to ${exchange.requestId}`);
  };
  const send = (secret = stage.secret, fields: Fields = {}) => stage.client(head(`GET ${target}`, secret, fields));
  /** One leading request, and those that wait for its response. */
  const together = async (followers: number, secretOf: (index: number) => string = () => stage.secret) => {
    hold();
    const leader = await send();
    await asked(1);
    const others: RawClient[] = [];
    for (let i = 0; i < followers; i++) others.push(await send(secretOf(i)));
    await stage.inFlight(followers + 1);
    expect(stage.upstream.exchanges, 'at the upstream').to.have.lengthOf(1);
    return { leader, others };
  };
  const answersTo = (clients: readonly RawClient[]) => Promise.all(clients.map((client) => client.response()));
  const count = (answers: readonly RawResponse[], what: 'hit' | 'miss') =>
    answers.filter((answer) => cacheOf(answer) === what).length;

  it('G15 of 200 identical requests one goes upstream, and all get its response', async () => {
    const { leader, others } = await together(199);
    answerAll();
    const answers = await answersTo([leader, ...others]);
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
    expect([count(answers, 'hit'), count(answers, 'miss')]).to.deep.equal([199, 1]);
    expect(stage.upstream.exchanges).to.have.lengthOf(1);
    expect(await stage.uses()).to.equal(1);
  });

  describe('the leading request', () => {
    const failures: Record<string, (exchange: Exchange) => void> = {
      'gets a 500': (exchange) => {
        exchange.respond(500, FRESH, 'broken');
      },
      'gets a response that may not be stored': (exchange) => {
        exchange.respond(200, 'Cache-Control: no-store\r\n', 'gets a private response');
      },
      'gets a cut response': (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 10\r\n\r\n12345`);
        exchange.fin();
      },
      'gets a response that is reset': (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 10\r\n\r\n12345`);
        exchange.socket.write('', () => {
          exchange.rst();
        });
      },
      'gets something other than HTTP': (exchange) => {
        exchange.send('What?\r\n\r\n');
        exchange.fin();
      },
      'gets a response that ends with its connection': (exchange) => {
        exchange.send(`HTTP/1.1 200 OK\r\n${FRESH}\r\nall of it`);
        exchange.fin();
      },
      'gets a stream': (exchange) => {
        exchange.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 10\r\n\r\ndata: ');
        setImmediate(() => exchange.send('1\n\n\n'));
      },
    };
    for (const [what, fail] of Object.entries(failures)) {
      it(`G15 the leading request ${what}: all others go upstream themselves, at once`, async () => {
        const { leader, others } = await together(3);
        fail(waiting.shift()!);
        await asked(4);
        answerAll();
        const answers = await answersTo(others);
        expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
        expect(count(answers, 'miss')).to.equal(3);
        await leader.response().catch(() => undefined);
      });
    }

    it('G15 the leading response may not be stored: the others go upstream as soon as its headers say so', async () => {
      const { leader, others } = await together(3);
      const [first] = waiting.splice(0);
      first?.send('HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 10\r\n\r\n12345');
      await asked(4);
      answerAll();
      expect(count(await answersTo(others), 'miss')).to.equal(3);
      first?.send('67890');
      expect((await leader.response()).text).to.equal('1234567890');
    });

    it('G15 after a response that may not be stored, such requests are not coalesced for ten seconds', async () => {
      const { leader, others } = await together(1);
      answerAll('Cache-Control: no-store\r\n');
      await asked(2);
      answerAll('Cache-Control: no-store\r\n');
      await answersTo([leader, ...others]);
      const apart = [await send(), await send()];
      await asked(4);
      answerAll('Cache-Control: no-store\r\n');
      await answersTo(apart);
      clock.advance(10_000);
      const joined = [await send(), await send()];
      await stage.inFlight(2);
      await asked(5);
      answerAll();
      expect(count(await answersTo(joined), 'hit')).to.equal(1);
    });

    it('G15 the leading request gets no response: the others wait as long as it does, then go upstream themselves', async () => {
      const { leader, others } = await together(2);
      clock.advance(REQUEST_TIMEOUT_MS + 100);
      expect((await leader.response()).status).to.equal(504);
      await asked(3);
      waiting.shift();
      answerAll();
      expect((await answersTo(others)).map(({ status }) => status)).to.deep.equal([200, 200]);
    });

    it('G15 the leading response stalls: a request that has waited for REQUEST_TIMEOUT goes upstream itself', async () => {
      const { leader, others } = await together(2);
      const [first] = waiting.splice(0);
      for (let round = 0; round < 4; round++) {
        // Bit by bit, so that it is never silent for long.
        if (round === 0) first?.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 10\r\n\r\n`);
        first?.send('x');
        await leader.seen('x'.repeat(round + 1));
        clock.advance(REQUEST_TIMEOUT_MS / 4);
      }
      await asked(3);
      answerAll();
      expect(count(await answersTo(others), 'miss')).to.equal(2);
      first?.send('xxxxxx');
      expect((await leader.response()).text).to.equal('x'.repeat(10));
    });

    it("G15 the leading request's client disconnects before the response begins: the others get the response", async () => {
      const { leader, others } = await together(3);
      leader.destroy();
      await eventually('it is recorded', () => stage.daemon.ended.length === 1);
      answerAll();
      expect(count(await answersTo(others), 'hit')).to.equal(3);
      expect(stage.upstream.exchanges).to.have.lengthOf(1);
    });

    it("G15 the leading request's client disconnects during the response: the others get the response", async () => {
      const { leader, others } = await together(3);
      const [first] = waiting.splice(0);
      first?.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 10\r\n\r\n12345`);
      await leader.seen('12345');
      leader.destroy();
      await eventually('it is recorded', () => stage.daemon.ended.length === 1);
      first?.send('67890');
      expect((await answersTo(others)).map(({ text }) => text)).to.deep.equal(Array(3).fill('1234567890'));
    });

    it("G15 the leading request's client disconnects, then its response fails: the others go upstream themselves", async () => {
      const { leader, others } = await together(3);
      leader.destroy();
      await eventually('it is recorded', () => stage.daemon.ended.length === 1);
      waiting.shift()?.respond(503, '', 'busy');
      await asked(4);
      answerAll();
      expect((await answersTo(others)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    });

    for (const [when, begin] of Object.entries({
      'before its response begins': () => Promise.resolve(),
      'during its response': async (leader: RawClient) => {
        waiting.shift()?.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: 10\r\n\r\n12345`);
        await leader.seen('12345');
      },
      'after its client disconnected': async (leader: RawClient) => {
        leader.destroy();
        await eventually('it is recorded', () => stage.daemon.ended.length === 1);
      },
    })) {
      it(`G15 the leading request's token is revoked ${when}: the next request leads in its place`, async () => {
        const others = await stage.issue();
        const { leader, others: followers } = await together(3, () => others.token);
        await begin(leader);
        await stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`);
        await asked(2);
        waiting = waiting.slice(-1);
        answerAll();
        const answers = await answersTo(followers);
        expect([count(answers, 'miss'), count(answers, 'hit')]).to.deep.equal([1, 2]);
        expect(await stage.uses(others)).to.equal(1);
      });
    }

    it("G15 the leading request's client does not read its response: the others are not delayed", async () => {
      const { leader, others } = await together(3);
      leader.socket.pause();
      for (const follower of others) follower.discard();
      const [first] = waiting.splice(0);
      first?.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: ${LARGE}\r\n\r\n`);
      await first?.pump(LARGE);
      await eventually(
        'the others have everything',
        () => others.every(({ socket }) => socket.bytesRead > LARGE),
        20_000,
      );
      leader.socket.resume();
    });

    it("G15 the leading request's client does not read its response: a later request is not delayed either", async () => {
      hold();
      const leader = await send();
      await asked(1);
      leader.socket.pause();
      const [first] = waiting.splice(0);
      first?.send(`HTTP/1.1 200 OK\r\n${FRESH}Content-Length: ${LARGE}\r\n\r\n`);
      const pumped = first?.pump(LARGE);
      // Until the buffers to the leader are full.
      await eventually('the daemon has begun', () => stage.serverSocket(leader).bytesWritten > 0);
      const follower = await send();
      follower.discard();
      await pumped;
      await eventually('it has everything', () => follower.socket.bytesRead > LARGE, 20_000);
      expect(stage.upstream.exchanges).to.have.lengthOf(1);
      leader.socket.resume();
    });

    it('G15 the leading request exceeds its cap while it waits for a connection: the next request leads in its place', async () => {
      hold();
      const capped = await stage.issue({ max_requests: 1 });
      // All connections are in use, and one more request of the capped token is first in the queue.
      const busy: RawClient[] = [];
      for (let i = 0; i < 4; i++) busy.push(await stage.client(head(`GET /v1/busy/${cases}/${i}`, stage.secret)));
      await asked(4);
      const first = await stage.client(head(`GET /v1/first/${cases}`, capped.token));
      await stage.inFlight(5);
      const leader = await send(capped.token);
      await stage.inFlight(6);
      const followers = [await send(), await send()];
      await stage.inFlight(8);
      answerAll();
      await answersTo(busy);
      await asked(6);
      answerAll();
      expect((await first.response()).status).to.equal(200);
      expectRefusal(await leader.response(), LIMIT_REACHED);
      const answers = await answersTo(followers);
      expect([count(answers, 'miss'), count(answers, 'hit')]).to.deep.equal([1, 1]);
      expect(await stage.uses(capped)).to.equal(1);
    });
  });

  describe('the waiting requests', () => {
    it('G15 a waiting client disconnects: the others are unaffected', async () => {
      const { leader, others } = await together(4);
      const [first, second, ...rest] = others;
      first?.destroy();
      second?.destroy();
      await eventually('they are recorded', () => stage.daemon.ended.length === 2);
      expect(stage.daemon.ended.map(({ outcome }) => outcome)).to.deep.equal(['client_closed', 'client_closed']);
      answerAll();
      const answers = await answersTo([leader, ...rest]);
      expect([count(answers, 'miss'), count(answers, 'hit')]).to.deep.equal([1, 2]);
      expect(await stage.uses()).to.equal(1);
    });

    it('G15 all waiting clients and the leading one disconnect: the upstream request is aborted', async () => {
      const { leader, others } = await together(3);
      for (const client of [leader, ...others]) client.destroy();
      await (await stage.upstream.only()).closed();
    });

    it('G15 the leading client disconnects, and later those that wait: the upstream request is aborted with the last one', async () => {
      const { leader, others } = await together(2);
      const [first] = stage.upstream.exchanges;
      for (const [index, client] of [leader, ...others].entries()) {
        expect(first?.socket.destroyed).to.equal(false);
        client.destroy();
        await eventually('it is recorded', () => stage.daemon.ended.length === index + 1);
      }
      await first?.closed();
    });

    it('G16 each waiting request is counted for its own token', async () => {
      const tokens = [await stage.issue(), await stage.issue(), await stage.issue({ max_requests: 1 })];
      const { leader, others } = await together(6, (index) => tokens[index % 3]?.token ?? '');
      answerAll();
      expect(count(await answersTo([leader, ...others]), 'hit')).to.equal(6);
      for (const token of tokens) {
        expect(await stage.daemon.token(token.id)).to.include({ request_count: 0, cache_hit_count: 2 });
      }
      expect(await stage.uses()).to.equal(1);
      const ids = stage.daemon.ended.map(({ tokenId }) => tokenId);
      expect(new Set(ids)).to.deep.equal(new Set([stage.token.id, ...tokens.map(({ id }) => id)]));
    });

    it('G16 each waiting request is authorised separately, also when the response arrives', async () => {
      const [revoked, expired, capped] = [
        await stage.issue(),
        await stage.issue({ duration_hours: 1 }),
        await stage.issue({ max_requests: 1 }),
      ];
      const { leader, others } = await together(3, (index) => [revoked, expired, capped][index]?.token ?? '');
      await stage.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
      const [first, second, third] = others as [RawClient, RawClient, RawClient];
      expectRefusal(await first.response(), UNAUTHORIZED);
      // The third token spends its last use elsewhere while its request waits.
      const elsewhere = await stage.client(head(`GET /v1/else/${cases}`, capped.token));
      await asked(2);
      answerAll();
      await elsewhere.response();
      await leader.response();
      expect((await second.response()).status).to.equal(200);
      expectRefusal(await third.response(), LIMIT_REACHED);
    });

    it('G16 a thousand waiting requests are refused one by one when their token has reached its cap meanwhile', async () => {
      const capped = await stage.issue({ max_requests: 1 });
      const { leader, others } = await together(1_000, () => capped.token);
      const use = await stage.client(head(`GET /v1/use/${cases}`, capped.token));
      await asked(2);
      waiting.pop()?.respond(200, '', 'used');
      await use.response();
      await stage.daemon.manage('DELETE', `/manage/tokens/${stage.token.id}`);
      expectRefusal(await leader.response(), UNAUTHORIZED);
      for (const answer of await answersTo(others)) expectRefusal(answer, LIMIT_REACHED);
    });

    it('G16 a waiting request for another variant goes upstream itself', async () => {
      hold();
      const leader = await send(stage.secret, { 'X-Flavour': 'a' });
      await asked(1);
      const [same, other] = [
        await send(stage.secret, { 'X-Flavour': 'a' }),
        await send(stage.secret, { 'X-Flavour': 'b' }),
      ];
      await stage.inFlight(3);
      answerAll(`${FRESH}Vary: X-Flavour\r\n`);
      await asked(2);
      answerAll(`${FRESH}Vary: X-Flavour\r\n`);
      const answers = await answersTo([leader, same, other]);
      expect(answers.map(cacheOf)).to.deep.equal(['miss', 'hit', 'miss']);
    });

    it('G16 a token expires while its request waits: the request is refused', async () => {
      const expiring = await stage.issue({ duration_hours: 1 });
      clock.advance(3_600_000 - 1_000);
      const { leader, others } = await together(1, () => expiring.token);
      clock.advance(2_000);
      answerAll();
      expect((await leader.response()).status).to.equal(200);
      expectRefusal(await others[0]!.response(), UNAUTHORIZED);
    });

    it('G16 requests with stricter cache directives do not join, or do not get a response that violates them', async () => {
      hold();
      const leader = await send();
      await asked(1);
      const others = [
        await send(stage.secret, { 'Cache-Control': 'no-cache' }),
        await send(stage.secret, { Range: 'bytes=0-1' }),
      ];
      const conditional = await send(stage.secret, { 'If-None-Match': '"v"' });
      await asked(4);
      const young = await send(stage.secret, { 'Cache-Control': 'max-age=10' });
      await stage.inFlight(5);
      answerAll(`${FRESH}Age: 100\r\n`);
      await answersTo([leader, ...others]);
      await eventually('the last have gone upstream', () => {
        answerAll(`${FRESH}Age: 100\r\n`);
        return stage.daemon.ended.length === 5;
      });
      await conditional.response();
      expect(cacheOf(await young.response()), 'a response of 100 s is too old').to.equal('miss');
    });
  });
});
