import { expect } from 'chai';
import { type Environment, loadSettings } from '../../config/settings.js';
import { type RateDecision, StoreUnavailable } from '../../daemon/core/ports.js';
import { RateLimits, type RateLimitSettings } from '../../daemon/core/rate-limit.js';
import { mintSecret } from '../../daemon/core/token.js';
import { localRateWindows } from '../../daemon/store/memory/rate-windows.js';
import { TestClock } from '../support/clock.js';
import { chunk, head, type RawResponse, WEBSOCKET } from '../support/raw.js';
import { expectRefusal, LIMIT_REACHED, MALFORMED, RATE_LIMITED, UNAUTHORIZED } from '../support/refusals.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { MANAGEMENT_TOKEN } from '../support/settings.js';

let scene: ProxyFixture;
const open = async (env: Environment) => {
  scene = await ProxyFixture.open(env);
};
const handshake = () => scene.send(head('GET /v1/realtime', scene.secret, WEBSOCKET));

async function getsThrough(times = 1): Promise<void> {
  for (let i = 0; i < times; i++) expect((await scene.get()).status).to.equal(200);
}

/** The rate limit headers of a refusal: seconds left, and the policy with its limit. */
function windowOf(answer: RawResponse): { waitS: number; policy: string } {
  expectRefusal(answer, RATE_LIMITED);
  const waitS = Number(answer.header('retry-after'));
  const policy = answer.header('ratelimit-policy') ?? '';
  const [name] = /^"\w+"/.exec(policy) ?? [];
  expect(answer.header('ratelimit')).to.equal(`${name};r=0;t=${waitS}`);
  return { waitS, policy };
}

describe('a limit per address', () => {
  afterEach(() => scene.close());

  it('admits that many requests per window, refuses the others, and starts again with the next window', async () => {
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

  it('counts neither OPTIONS nor malformed requests, nor /manage and probes', async () => {
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

  it('is recorded as a refusal without a known token', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    await getsThrough();
    scene.daemon.ended.length = 0;
    windowOf(await scene.get());
    expect(await scene.onlyRecord()).to.include({
      outcome: 'refused',
      code: 'rate_limited',
      status: 429,
      tokenId: null,
    });
  });

  it('leaves the connection open for the next request', async () => {
    await open({ IP_RATE_LIMIT: '1' });
    const client = await scene.client(head('GET /v1/models', scene.secret).repeat(3));
    expect((await client.response()).status).to.equal(200);
    for (let i = 0; i < 2; i++) windowOf(await client.response());
    expect(client.isClosed).to.equal(false);
  });
});

describe('a global limit', () => {
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

  it('counts only requests with a valid token', async () => {
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

  it('refuses before a use is drawn or the body is read, and records the token', async () => {
    await open({ GLOBAL_RATE_LIMIT: '1' });
    await getsThrough();
    scene.daemon.ended.length = 0;
    windowOf(await scene.send(scene.post({ 'Transfer-Encoding': 'chunked' }, chunk('begun'))));
    expect(await scene.onlyRecord()).to.include({ outcome: 'refused', code: 'rate_limited', tokenId: scene.token.id });
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

  it('applies in addition to the limit per address', async () => {
    await open({ GLOBAL_RATE_LIMIT: '1', IP_RATE_LIMIT: '3' });
    await getsThrough();
    expect(windowOf(await scene.get()).policy).to.match(/^"global"/);
    await scene.get();
    expect(windowOf(await scene.get()).policy).to.match(/^"address"/);
  });

  it('has headers that a page of an allowed origin can read', async () => {
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

  it('admit the difference in the same window when they are raised', async () => {
    change({ IP_RATE_LIMIT: '4' });
    await getsThrough(2);
    expect(windowOf(await scene.get()).policy).to.equal('"address";q=4;w=3600');
  });

  it('refuse at once when they are lowered', async () => {
    change({ IP_RATE_LIMIT: '3' });
    await getsThrough();
    change({ IP_RATE_LIMIT: '1' });
    windowOf(await scene.get());
  });

  it('refuse no request when they are off, and start at 0 after the window', async () => {
    change({ IP_RATE_LIMIT: '0' });
    await getsThrough(5);
    change({});
    windowOf(await scene.get());
    scene.daemon.clock.advance(3_600_000);
    await getsThrough(2);
  });

  it('apply a new window length at once', async () => {
    scene.daemon.clock.advance(20_000);
    change({ RATE_LIMIT_WINDOW: '1m' });
    expect(windowOf(await scene.get()).waitS).to.be.within(35, 40);
    change({ RATE_LIMIT_WINDOW: '10s' });
    await getsThrough(2);
    windowOf(await scene.get());
  });

  it('can be turned on', async () => {
    change({ IP_RATE_LIMIT: '0', GLOBAL_RATE_LIMIT: '1' });
    await getsThrough();
    expect(windowOf(await scene.get()).policy).to.equal('"global";q=1;w=3600');
  });
});

describe('limits whose shared windows answer at once', () => {
  const limitsOf = (take: () => RateDecision, onFailure: RateLimitSettings['rateLimitOnRedisFailure'] = 'local') =>
    new RateLimits({
      live: {
        current: { ipRateLimit: 0, globalRateLimit: 1, rateLimitWindowMs: 60_000, rateLimitOnRedisFailure: onFailure },
      },
      local: localRateWindows(new TestClock()),
      shared: { take },
    });
  const unavailable = () => {
    throw new StoreUnavailable('Redis is unavailable');
  };

  it('count in this process, or refuse, if they are unavailable', () => {
    const local = limitsOf(unavailable);
    expect(local.countAuthenticated()).to.equal(undefined);
    expect(() => local.countAuthenticated())
      .to.throw()
      .with.property('kind', 'rate_limited');
    expect(() => limitsOf(unavailable, 'deny').countAuthenticated())
      .to.throw()
      .with.property('kind', 'unavailable');
  });

  it('never send a Retry-After that is too early, or 0', () => {
    for (const [resetMs, seconds] of [
      [0.2, 1],
      [1_000, 1],
      [1_000.5, 2],
    ] as const) {
      const limits = limitsOf(() => ({ isAllowed: false, resetMs }));
      expect(() => limits.countAuthenticated())
        .to.throw()
        .with.property('retryAfterSeconds', seconds);
    }
  });
});
