import { expect } from 'chai';
import { head } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const MINUTE_MS = 60_000;

describe('X-Token-Warning', () => {
  const scene = ProxyFixture.forSuite({ HTTP_CACHE_ENABLED: 'true' });

  const issue = async (fields: Record<string, unknown>) => {
    scene.token = await scene.daemon.createToken(scene.project.id, fields);
  };
  let paths = 0;
  /** The warning on a forwarded response. */
  const warning = async () => {
    const answer = await scene.send(head(`GET /v1/models?page=${++paths}`, scene.secret));
    expect(answer.status).to.equal(200);
    return answer.header('x-token-warning');
  };
  /** Moves the time to this many seconds before the expiry. */
  const moveTo = (seconds: number) => {
    const { clock } = scene.daemon;
    clock.advance(Date.parse(scene.token.expires_at) - clock.now() - seconds * 1000 - 500);
  };

  it('says how many seconds are left, in the last tenth of the lifetime', async () => {
    await issue({ duration_minutes: 100 });
    expect(await warning()).to.equal(undefined);
    moveTo(10 * 60 + 10);
    expect(await warning()).to.equal(undefined);
    moveTo(540);
    expect(await warning()).to.match(/^expires-in=5(?:40|39|38)$/);
    moveTo(5);
    expect(await warning()).to.match(/^expires-in=[345]$/);
  });

  it('says which share of the cap is left, in its last tenth', async () => {
    await issue({ duration_minutes: 100, max_requests: 20 });
    const all = [];
    for (let i = 0; i < 20; i++) all.push(await warning());
    expect(all.slice(0, 18).filter((each) => each !== undefined)).to.deep.equal([]);
    expect(all.slice(18)).to.deep.equal(['requests-left=5%', 'requests-left=0%']);
  });

  it('says both', async () => {
    await issue({ duration_minutes: 100, max_requests: 1 });
    moveTo(60);
    expect(await warning()).to.match(/^expires-in=(?:60|59|58), requests-left=0%$/);
  });

  it('is on hits of the cache, from the moment at which it is true', async () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(200, { 'Cache-Control': 'public, max-age=86400', 'X-Token-Warning': 'forged' }).end('{}');
    };
    await issue({ duration_minutes: 100 });
    const first = await scene.get();
    expect([first.header('x-proxy-cache'), first.all('x-token-warning')]).to.deep.equal(['miss', []]);
    scene.daemon.clock.advance(95 * MINUTE_MS);
    const hit = await scene.get();
    expect(hit.header('x-proxy-cache')).to.equal('hit');
    expect(hit.header('x-token-warning')).to.match(/^expires-in=(?:300|29\d)$/);
  });
});
