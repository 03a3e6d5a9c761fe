import { expect } from 'chai';
import { type Environment, loadSettings } from '../../config/settings.js';
import { type RateTaken, StoreUnavailable } from '../../daemon/core/ports.js';
import { RateLimits, type RateLimitSettings } from '../../daemon/core/rate-limit.js';
import type { Refusal } from '../../daemon/core/refusal.js';
import { mintSecret } from '../../daemon/core/token.js';
import { MemoryRateWindows } from '../../daemon/store/memory/rate-windows.js';
import { TestClock } from '../support/clock.js';
import { chunk, head, type RawAnswer, RawClient } from '../support/raw.js';
import { expectRefusal, LIMIT_REACHED, MALFORMED, RATE_LIMITED, UNAUTHORIZED } from '../support/refusals.js';
import { Scene } from '../support/scene.js';
import { MANAGEMENT_TOKEN } from '../support/settings.js';

const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
};

let scene: Scene;
const open = async (env: Environment) => {
  scene = await Scene.open(env);
};
const handshake = () => scene.send(head('GET /v1/realtime', scene.secret, HANDSHAKE));

async function getsThrough(times = 1): Promise<void> {
  for (let i = 0; i < times; i++) expect((await scene.get()).status).to.equal(200);
}

/** What a refusal says of its window: seconds, and the policy with what it allows. */
function windowOf(answer: RawAnswer): { waitS: number; policy: string } {
  expectRefusal(answer, RATE_LIMITED);
  const waitS = Number(answer.header('retry-after'));
  const policy = answer.header('ratelimit-policy') ?? '';
  const [name] = /^"\w+"/.exec(policy) ?? [];
  expect(answer.header('ratelimit')).to.equal(`${name};r=0;t=${waitS}`);
  return { waitS, policy };
}

describe('a limit for each address', () => {
  afterEach(() => scene.close());

  it('lets as many requests through in a window, refuses the others, and begins anew with the next', async () => {
    await open({ IP_RATE_LIMIT: '3', RATE_LIMIT_WINDOW: '60s' });
    await getsThrough(3);
    const { waitS, policy } = windowOf(await scene.get());
    expect(policy).to.equal('"address";q=3;w=60');
    expect(waitS).to.be.within(55, 60);
    await scene.expectSpent(3);
    scene.daemon.clock.advance(30_000);
    expect(windowOf(await scene.get()).waitS).to.be.within(25, 30);
    scene.daemon.clock.advance(30_000);
    await getsThrough(3);
    windowOf(await scene.get());
  });

  it('counts whatever is presented, and asks nobody about it', async () => {
    await open({ IP_RATE_LIMIT: '3' });
    for (const secret of [null, mintSecret(), 'no-secret']) expectRefusal(await scene.get(secret), UNAUTHORIZED);
    const { database } = scene.daemon.daemon.stores;
    const before = database.statements;
    for (const secret of [null, mintSecret(), 'no-secret', scene.secret]) windowOf(await scene.get(secret));
    expect(database.statements).to.equal(before);
  });

  it('is one for each of them', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    const from = async (address: string) => {
      const client = await RawClient.to(scene.daemon.url, address);
      client.send(head('GET /v1/models', scene.secret));
      return client.answer().finally(() => {
        client.destroy();
      });
    };
    expect((await from('127.0.0.2')).status).to.equal(200);
    windowOf(await from('127.0.0.2'));
    expect((await from('127.0.0.3')).status).to.equal(200);
  });

  it('counts neither OPTIONS nor what has no shape, nor /manage and probes', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    for (let i = 0; i < 3; i++) {
      expect((await scene.send(head('OPTIONS /v1/models', null))).status).to.equal(204);
      expectRefusal(await scene.send(head('GET /v1//models', scene.secret)), MALFORMED);
      expect((await scene.daemon.manage('GET', '/manage/projects')).status).to.equal(200);
      expect((await fetch(`${scene.daemon.url}/live`)).status).to.equal(200);
    }
    await getsThrough();
    windowOf(await scene.get());
    expect((await scene.daemon.manage('GET', '/manage/projects')).status).to.equal(200);
    expect((await fetch(`${scene.daemon.url}/ready`)).status).to.equal(200);
  });

  it('counts and refuses the handshake of a WebSocket like any request', async () => {
    await open({ IP_RATE_LIMIT: '2' });
    await handshake();
    await getsThrough();
    expect(windowOf(await handshake()).policy).to.equal('"address";q=2;w=60');
    expect(scene.provider.received).to.have.length(2);
  });

  it('is recorded as a refusal of nobody known', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    await getsThrough();
    scene.daemon.ended.length = 0;
    windowOf(await scene.get());
    expect(await scene.onlyEnd()).to.include({ outcome: 'refused', code: 'rate_limited', status: 429, tokenId: null });
  });

  it('lets a connection go on to its next request', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    const client = await scene.client(head('GET /v1/models', scene.secret).repeat(3));
    expect((await client.answer()).status).to.equal(200);
    for (let i = 0; i < 2; i++) windowOf(await client.answer());
    expect(client.isClosed).to.equal(false);
  });
});

describe('a limit for all', () => {
  afterEach(() => scene.close());

  it('counts the requests of all tokens and addresses together', async () => {
    await open({ GLOBAL_RATE_LIMIT: '4', RATE_LIMIT_WINDOW: '2m' });
    const other = await scene.daemon.createToken(scene.project.id);
    await getsThrough(2);
    for (let i = 0; i < 2; i++) expect((await scene.get(other.token)).status).to.equal(200);
    expect(windowOf(await scene.get(other.token)).policy).to.equal('"global";q=4;w=120');
    windowOf(await scene.get());
    expect(await scene.uses(), 'uses').to.equal(2);
    scene.daemon.clock.advance(120_000);
    await getsThrough(4);
  });

  it('counts those with a valid token only', async () => {
    await open({ GLOBAL_RATE_LIMIT: '2' });
    const revoked = await scene.daemon.createToken(scene.project.id);
    const spent = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
    await scene.daemon.manage('DELETE', `/manage/tokens/${revoked.id}`);
    expect((await scene.get(spent.token)).status).to.equal(200);
    for (let i = 0; i < 3; i++) {
      for (const secret of [null, mintSecret(), revoked.token]) expectRefusal(await scene.get(secret), UNAUTHORIZED);
      expectRefusal(await scene.get(spent.token), LIMIT_REACHED);
    }
    await getsThrough();
    windowOf(await scene.get());
    expectRefusal(await scene.get(mintSecret()), UNAUTHORIZED);
  });

  it('refuses before anything is spent, the body not read, and the record names the token', async () => {
    await open({ GLOBAL_RATE_LIMIT: '1' });
    await getsThrough();
    scene.daemon.ended.length = 0;
    windowOf(await scene.send(scene.post({ 'Transfer-Encoding': 'chunked' }, chunk('begun'))));
    expect(await scene.onlyEnd()).to.include({ outcome: 'refused', code: 'rate_limited', tokenId: scene.token.id });
    await scene.expectSpent(1);
    await scene.inFlight(0);
  });

  it('counts and refuses the handshake of a WebSocket like any request', async () => {
    await open({ GLOBAL_RATE_LIMIT: '2' });
    await handshake();
    await getsThrough();
    expect(windowOf(await handshake()).policy).to.equal('"global";q=2;w=60');
    await scene.expectSpent(2);
  });

  it('stands beside the one for addresses', async () => {
    await open({ GLOBAL_RATE_LIMIT: '1', IP_RATE_LIMIT: '3' });
    await getsThrough();
    expect(windowOf(await scene.get()).policy).to.match(/^"global"/);
    await scene.get();
    expect(windowOf(await scene.get()).policy).to.match(/^"address"/);
  });

  it('can be read of by a page of a listed origin', async () => {
    await open({ GLOBAL_RATE_LIMIT: '1', CORS_ALLOWED_ORIGINS: 'https://app.example' });
    await getsThrough();
    const answer = await scene.get(scene.secret, { Origin: 'https://app.example' });
    windowOf(answer);
    const exposed = answer.header('access-control-expose-headers')?.split(', ');
    expect(exposed).to.include.members(['RateLimit', 'RateLimit-Policy', 'Retry-After']);
  });
});

describe('limits that SIGHUP changes', () => {
  const before = { IP_RATE_LIMIT: '2', RATE_LIMIT_WINDOW: '1h' };
  const change = (env: Environment) => {
    scene.daemon.daemon.apply(loadSettings({ MANAGEMENT_TOKEN, ...before, ...env }).reloadable);
  };
  beforeEach(async () => {
    await open(before);
    await getsThrough(2);
    windowOf(await scene.get());
  });
  afterEach(() => scene.close());

  it('let the difference through in the same window when they are higher', async () => {
    change({ IP_RATE_LIMIT: '4' });
    await getsThrough(2);
    expect(windowOf(await scene.get()).policy).to.equal('"address";q=4;w=3600');
  });

  it('refuse at once when they are lower', async () => {
    change({ IP_RATE_LIMIT: '3' });
    await getsThrough();
    change({ IP_RATE_LIMIT: '1' });
    windowOf(await scene.get());
  });

  it('refuse nobody when they are off, and count from nothing when the window is over', async () => {
    change({ IP_RATE_LIMIT: '0' });
    await getsThrough(5);
    change({});
    windowOf(await scene.get());
    scene.daemon.clock.advance(3_600_000);
    await getsThrough(2);
  });

  it('go by a new length of the window at once', async () => {
    scene.daemon.clock.advance(20_000);
    change({ RATE_LIMIT_WINDOW: '1m' });
    expect(windowOf(await scene.get()).waitS).to.be.within(35, 40);
    change({ RATE_LIMIT_WINDOW: '10s' });
    await getsThrough(2);
    windowOf(await scene.get());
  });

  it('come into force where there were none', async () => {
    change({ IP_RATE_LIMIT: '0', GLOBAL_RATE_LIMIT: '1' });
    await getsThrough();
    expect(windowOf(await scene.get()).policy).to.equal('"global";q=1;w=3600');
  });
});

describe('limits that several instances share', () => {
  let current: RateLimitSettings;
  let take: () => RateTaken | Promise<RateTaken>;
  let limits: RateLimits;

  beforeEach(() => {
    current = { ipRateLimit: 2, globalRateLimit: 2, rateLimitWindowMs: 60_000, rateLimitOnRedisFailure: 'local' };
    const clock = new TestClock({ standsStill: true });
    limits = new RateLimits({
      live: {
        get current() {
          return current;
        },
      },
      local: { address: new MemoryRateWindows(clock), global: new MemoryRateWindows(clock, 1) },
      shared: { take: () => take() },
    });
  });

  const away = () => new StoreUnavailable('Redis is away');
  /** The kind of the refusal, or null. */
  const counted = async (count: () => Promise<void> | undefined): Promise<string | null> => {
    try {
      await count();
      return null;
    } catch (error) {
      return (error as Refusal).kind;
    }
  };
  const address = () => counted(() => limits.countAddress('203.0.113.7'));
  const all = () => counted(() => limits.countValid());

  for (const [when, fail] of [
    [
      'at once',
      () => {
        throw away();
      },
    ],
    ['later', () => Promise.reject(away())],
  ] as const) {
    it(`count in this process while the windows are away, told of it ${when}`, async () => {
      take = fail;
      expect([await address(), await address(), await address()]).to.deep.equal([null, null, 'rate_limited']);
      expect([await all(), await all(), await all()]).to.deep.equal([null, null, 'rate_limited']);
      expect(limits.failOpens).to.equal(6);
    });

    it(`refuse with unavailable where nobody may pass uncounted, told of it ${when}`, async () => {
      take = fail;
      current = { ...current, rateLimitOnRedisFailure: 'deny' };
      expect([await address(), await all()]).to.deep.equal(['unavailable', 'unavailable']);
      expect(limits.failOpens).to.equal(0);
    });
  }

  it('go by what the shared windows say as soon as they are back', async () => {
    take = () => Promise.reject(away());
    for (let i = 0; i < 3; i++) await address();
    take = () => Promise.resolve({ isWithin: true, resetMs: 1 });
    expect(await address()).to.equal(null);
    take = () => ({ isWithin: false, resetMs: 1 });
    expect(await address()).to.equal('rate_limited');
  });

  it('wait for nothing where their windows do not', () => {
    take = () => ({ isWithin: true, resetMs: 1 });
    expect([limits.countAddress('203.0.113.7'), limits.countValid()]).to.deep.equal([undefined, undefined]);
  });

  it('never ask to come back too early, nor in no time', () => {
    for (const [resetMs, seconds] of [
      [0.2, 1],
      [1_000, 1],
      [1_000.5, 2],
    ] as const) {
      take = () => ({ isWithin: false, resetMs });
      expect(() => limits.countValid())
        .to.throw()
        .with.property('retryAfterSeconds', seconds);
    }
  });

  it('do not ask them when they are off', () => {
    take = () => {
      throw new Error('asked');
    };
    current = { ...current, ipRateLimit: 0, globalRateLimit: 0 };
    expect(limits.countsAddresses).to.equal(false);
    expect([limits.countAddress('203.0.113.7'), limits.countValid()]).to.deep.equal([undefined, undefined]);
  });
});
