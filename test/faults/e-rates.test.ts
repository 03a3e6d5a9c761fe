import { expect } from 'chai';
import { RateLimits } from '../../daemon/core/rate-limit.js';
import { mintSecret } from '../../daemon/core/token.js';
import { localRateWindows } from '../../daemon/store/memory/rate-windows.js';
import { TestClock } from '../support/clock.js';
import { type Fields, head, type RawResponse, WEBSOCKET } from '../support/raw.js';
import { expectRefusal, RATE_LIMITED } from '../support/refusals.js';
import { heapAfterCollection } from './support/heap.js';
import { type FaultFixture, staged } from './support/fault-fixture.js';

const WINDOW_MS = 60_000;
/** The responses to requests that are all sent at the same moment. */
async function atOnce(stage: FaultFixture, requests: readonly string[]): Promise<RawResponse[]> {
  const clients = await Promise.all(requests.map(() => stage.client()));
  for (const [index, client] of clients.entries()) client.send(requests[index] ?? '');
  return Promise.all(clients.map((client) => client.response()));
}

/** The number of requests that were let through. Each other one must be refused by a rate limit with Retry-After. */
function letThrough(answers: readonly RawResponse[], passed = 200): number {
  const refused = answers.filter(({ status }) => status !== passed);
  for (const answer of refused) {
    expectRefusal(answer, RATE_LIMITED);
    expect(Number(answer.header('retry-after'))).to.be.within(1, WINDOW_MS / 1000);
  }
  return answers.length - refused.length;
}

describe('E: a limit for all requests', () => {
  const LIMIT = 50;
  const { stage, it } = staged({ env: { GLOBAL_RATE_LIMIT: String(LIMIT) } });
  const nextWindow = () => {
    stage.daemon.clock.advance(WINDOW_MS);
  };

  it('E12 four times as many requests as the limit: exactly the limit is let through, in each window', async () => {
    for (let window = 0; window < 3; window++) {
      nextWindow();
      expect(letThrough(await atOnce(stage, Array<string>(4 * LIMIT).fill(stage.get())))).to.equal(LIMIT);
    }
    expect(await stage.uses()).to.equal(3 * LIMIT);
  });

  it('E12 requests of several tokens, requests with bodies and WebSocket handshakes count together, exactly', async () => {
    nextWindow();
    const other = await stage.issue();
    const requests = [
      stage.get(),
      stage.post('{}'),
      head('GET /v1/models', other.token),
      head('GET /v1/realtime', stage.secret, WEBSOCKET),
    ];
    const answers = await atOnce(
      stage,
      Array.from({ length: 2 * LIMIT }, (_, i) => requests[i % requests.length]!),
    );
    expect(letThrough(answers)).to.equal(LIMIT);
    expect((await stage.uses()) + (await stage.uses(other))).to.equal(LIMIT);
  });
});

describe('E: a limit for each address', () => {
  const LIMIT = 5;
  const { stage, it } = staged({ env: { IP_RATE_LIMIT: String(LIMIT) } });
  const nextWindow = () => {
    stage.daemon.clock.advance(WINDOW_MS);
  };

  const FORGED: Record<string, (address: string) => Fields> = {
    'X-Forwarded-For': (address) => ({ 'X-Forwarded-For': address }),
    'X-Forwarded-For behind others': (address) => ({ 'X-Forwarded-For': ['127.0.0.1', `${address}, ${address}`] }),
    Forwarded: (address) => ({ Forwarded: `for=${address}` }),
    'X-Real-IP': (address) => ({ 'X-Real-IP': address, 'X-Client-IP': address, 'True-Client-IP': address }),
    X_Forwarded_For: (address) => ({ X_Forwarded_For: address, 'X-Llmp-Client-IP': address }),
  };
  for (const [what, fields] of Object.entries(FORGED)) {
    it(`B05 E13 the limit cannot be bypassed by ${what}`, async () => {
      nextWindow();
      const requests = Array.from({ length: 20 }, (_, i) => stage.get(fields(`203.0.113.${i}`)));
      expect(letThrough(await atOnce(stage, requests))).to.equal(LIMIT);
      expect(stage.upstream.exchanges).to.have.length(LIMIT);
    });
  }

  for (const [what, fields] of [
    ['tokens', {}],
    ['WebSocket handshakes', WEBSOCKET],
  ] as const) {
    it(`E15 H11 a flood of unknown ${what} above the limit causes no database lookups`, async () => {
      nextWindow();
      const { database } = stage.daemon.daemon.stores;
      const before = await stage.databaseAtRest();
      const flood = Array.from({ length: 40 * LIMIT }, () => head('GET /v1/models', mintSecret(), fields));
      expect(letThrough(await atOnce(stage, flood), 401)).to.equal(LIMIT);
      // A lookup for each request that was let through, and the daemon's own queries, but none for each token.
      expect(database.statements - before, 'statements').to.be.below(flood.length / 4);
      await stage.expectNothingSpent();
    });
  }
});

describe('E: a limit for each address, with a proxy in front', () => {
  const LIMIT = 3;
  const { stage, it } = staged({ env: { IP_RATE_LIMIT: String(LIMIT), TRUSTED_PROXIES: '127.0.0.1' } });

  /** The number of requests that are let through, when the proxy reports these client addresses. */
  const letThroughOf = async (...clients: string[]) =>
    letThrough(
      await atOnce(
        stage,
        clients.map((client) => stage.get({ 'X-Forwarded-For': client })),
      ),
    );

  it('E13 one limit applies to an IPv6 network of 64 bits', async () => {
    const sweep = Array.from({ length: 20 }, (_, i) => `2001:db8:0:1:${(i * 977).toString(16)}::${i + 1}`);
    expect(await letThroughOf(...sweep)).to.equal(LIMIT);
    expect(await letThroughOf('2001:db8:0:2::1'), 'the next network').to.equal(1);
  });

  it('E13 one limit applies to an IPv4 address in all of its notations', async () => {
    const same = [
      '203.0.113.9',
      '::ffff:203.0.113.9',
      '::ffff:cb00:7109',
      '0:0:0:0:0:ffff:203.0.113.9',
      '203.0.113.9:80',
    ];
    expect(await letThroughOf(...same, '[::FFFF:203.0.113.9]:80')).to.equal(LIMIT);
    expect(await letThroughOf('::ffff:203.0.113.10'), 'the next address').to.equal(1);
  });

  it("E13 the address that the proxy appended counts, not the client's own entries in front of it", async () => {
    const forged = Array.from({ length: 10 }, (_, i) => `198.51.100.${i}, 203.0.113.20`);
    expect(await letThroughOf(...forged)).to.equal(LIMIT);
  });
});

describe('E: a table of addresses', () => {
  const MILLION = 1_000_000;
  const MOST_KEPT = 100_000;
  const LARGEST_GROWTH = 40_000_000; // Bytes. All addresses would take ten times as much.

  it('E14 a million addresses: memory is bounded, and neither the global window nor that of an active address is lost', function () {
    this.timeout(120_000);
    const clock = new TestClock({ standsStill: true });
    const local = localRateWindows(clock);
    const limits = new RateLimits({
      live: {
        current: { ipRateLimit: 1, globalRateLimit: 1, rateLimitWindowMs: WINDOW_MS, rateLimitOnRedisFailure: 'local' },
      },
      local,
      shared: null,
    });
    const before = heapAfterCollection();
    void limits.countAuthenticated();
    void limits.countAddress('203.0.113.7');
    for (let i = 0; i < MILLION; i++) {
      void limits.countAddress(`2001:db8:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`);
      if (i % 50_000 === 0) expect(() => limits.countAddress('203.0.113.7')).to.throw('rate limit exceeded');
    }
    expect(local.address.size).to.equal(MOST_KEPT);
    expect(heapAfterCollection() - before, 'growth of the heap').to.be.below(LARGEST_GROWTH);
    expect(() => limits.countAuthenticated()).to.throw('rate limit exceeded');
    expect(() => limits.countAddress('203.0.113.7')).to.throw('rate limit exceeded');
  });
});
