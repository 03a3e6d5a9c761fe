import { expect } from 'chai';
import type { Outcome } from '../../daemon/core/events.js';
import { auditOf, changesOf, problemOf, write } from '../support/management.js';
import { json } from '../support/provider.js';
import { head, type RawResponse } from '../support/raw.js';
import { perTest } from '../support/per-test.js';
import { redisPerTest, Relay, WITHOUT_REDIS } from '../support/redis.js';
import { expectRefusal, LIMIT_REACHED, UNAUTHORIZED } from '../support/refusals.js';
import { ProxyFixture } from '../support/proxy-fixture.js';
import { eventually } from '../support/eventually.js';
import { itInOneProcess } from '../support/test-workers.js';
import { revokeAndReactivate } from './support/revoke-and-reactivate.js';
import { addTokens } from './support/add-tokens.js';

const LIMIT = 100;
const PARALLEL = 500;

describe('F: uses and states of tokens', function () {
  this.timeout(60_000);
  let scene: ProxyFixture;

  const open = async (env: Record<string, string> = {}) => {
    scene = await ProxyFixture.open(env);
  };
  afterEach(() => scene.close());

  const setActive = (isActive: boolean, id = scene.token.id) =>
    scene.daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: isActive });
  const capped = async (limit = LIMIT) => {
    scene.token = await scene.daemon.createToken(scene.project.id, { max_requests: limit });
  };
  /** Sends that many requests at once, each on its own connection; null for each whose client disconnects. */
  const atOnce = (times: number, ask: (n: number) => Promise<RawResponse | null> = () => scene.get()) =>
    Promise.all(Array.from({ length: times }, (_, n) => ask(n)));
  const statuses = (answers: readonly (RawResponse | null)[]) => {
    const counts: Record<string, number> = {};
    for (const answer of answers) counts[answer?.status ?? 'left'] = (counts[answer?.status ?? 'left'] ?? 0) + 1;
    return counts;
  };

  describe('with a cap', () => {
    it(`F01 ${PARALLEL} requests at once: exactly as many as the cap reach the upstream, and no more after a minute`, async () => {
      await open();
      await capped();
      expect(statuses(await atOnce(PARALLEL))).to.deep.equal({ 200: LIMIT, 429: PARALLEL - LIMIT });
      scene.daemon.clock.advance(60_000);
      expectRefusal(await scene.get(), LIMIT_REACHED);
      await scene.expectSpent(LIMIT);
    });

    describe(`with Redis${WITHOUT_REDIS}`, () => {
      const redis = redisPerTest();
      const relay = perTest(() => Relay.to(redis.port));

      it('F03 the cap is exact when Redis is killed meanwhile', async () => {
        await open({
          REDIS_ADDR: relay.address,
          GLOBAL_RATE_LIMIT: '1000000',
          HTTP_CACHE_ENABLED: 'true',
          LLM_PROXY_EVENT_BUS: 'redis-streams',
        });
        await capped();
        let gone: Promise<void> | undefined;
        scene.provider.onHead = () => {
          if (scene.provider.received.length === LIMIT / 4) gone = redis.kill();
        };
        // Each requests another resource, because the cache would serve equal ones.
        const answers = await atOnce(PARALLEL, (n) => scene.send(head(`GET /v1/models?n=${n}`, scene.secret)));
        await gone;
        expect(redis.isDown).to.equal(true);
        expect(statuses(answers)).to.deep.equal({ 200: LIMIT, 429: PARALLEL - LIMIT });
        await scene.expectSpent(LIMIT);
      });
    });

    it('F04 client aborts and upstream failures also use the cap, and it is never exceeded', async () => {
      await open();
      await capped();
      scene.provider.answer = (_req, res, { url }) => {
        const n = Number(new URL(url, 'http://provider').searchParams.get('n'));
        if (n % 10 === 1) res.destroy();
        else if (n % 10 === 2) json(res, 500, {});
        else if (n % 10 !== 3) json(res, 200, {});
        // The other requests never get a response: their clients disconnect.
      };
      const ask = async (n: number) => {
        // A POST, because a GET may be retried.
        const client = await scene.client(head(`POST /v1/echo?n=${n}`, scene.secret, { 'Content-Length': '2' }) + '{}');
        if (n % 10 !== 3) return client.response();
        const has = () => scene.provider.received.some(({ url }) => url.endsWith(`?n=${n}`));
        await eventually('it has arrived, or is refused', () => has() || client.pending.length > 0);
        if (client.pending.length > 0) return client.response();
        client.destroy();
        return null;
      };
      const answers = await atOnce(PARALLEL, ask);
      const counts = statuses(answers);
      expect(counts[429]).to.equal(PARALLEL - LIMIT);
      expect((counts[200] ?? 0) + (counts[500] ?? 0) + (counts[502] ?? 0) + (counts.left ?? 0)).to.equal(LIMIT);
      await scene.inFlight(0);
      await scene.expectSpent(LIMIT);
      expectRefusal(await scene.get(), LIMIT_REACHED);
    });
  });

  describe('F21 requests that end in different ways', () => {
    interface Row {
      what: string;
      outcome: Outcome;
      uses: 0 | 1;
      hits?: 0 | 1;
      play: () => Promise<unknown>;
    }
    const answering = (status: number) => async () => {
      scene.provider.answer = (_req, res) => {
        json(res, status, {});
      };
      return scene.get();
    };
    const cached = async () => {
      scene.provider.answer = (_req, res) => {
        json(res, 200, {}, { 'cache-control': 'max-age=60' });
      };
      const other = await scene.daemon.createToken(scene.project.id);
      await scene.get(other.token);
      await eventually('it is stored', async () => (await scene.get(other.token)).header('x-proxy-cache') === 'hit');
      expect((await scene.get()).header('x-proxy-cache')).to.equal('hit');
    };
    const ROWS: Row[] = [
      { what: 'a successful response', outcome: 'ok', uses: 1, play: answering(200) },
      { what: "the upstream's own 404", outcome: 'upstream_refused', uses: 1, play: answering(404) },
      { what: "the upstream's own 429", outcome: 'upstream_refused', uses: 1, play: answering(429) },
      { what: "the upstream's own 503", outcome: 'upstream_error', uses: 1, play: answering(503) },
      { what: 'an upstream key that is rejected (502)', outcome: 'upstream_error', uses: 1, play: answering(401) },
      {
        what: 'an upstream that breaks off before its response (502)',
        outcome: 'upstream_error',
        uses: 1,
        play: () => {
          scene.provider.answer = (_req, res) => {
            res.destroy();
          };
          return scene.send(scene.post({}, 'x'));
        },
      },
      {
        what: 'an upstream that is silent (504)',
        outcome: 'timeout',
        uses: 1,
        play: async () => {
          const client = await scene.beforeHeaders();
          scene.daemon.clock.advance(60_000);
          expect((await client.response()).status).to.equal(504);
        },
      },
      {
        what: 'a response that is cut',
        outcome: 'truncated',
        uses: 1,
        play: async () => {
          (await scene.midStream()).upstream.destroy();
        },
      },
      {
        what: 'a client that disconnects before its response',
        outcome: 'client_closed',
        uses: 1,
        play: async () => {
          (await scene.beforeHeaders()).destroy();
        },
      },
      {
        what: 'a client that disconnects during its response',
        outcome: 'client_closed',
        uses: 1,
        play: async () => {
          (await scene.midStream()).client.destroy();
        },
      },
      {
        what: 'a client that disconnects during its upload',
        outcome: 'client_closed',
        uses: 1,
        play: async () => {
          (await scene.midUpload()).destroy();
        },
      },
      {
        what: 'an upstream that stalls during its response',
        outcome: 'timeout',
        uses: 1,
        play: async () => {
          await scene.midStream();
          scene.daemon.clock.advance(60_000);
        },
      },
      {
        what: 'a request whose token is revoked before its response',
        outcome: 'revoked',
        uses: 1,
        play: () => scene.beforeHeaders().then(() => setActive(false)),
      },
      {
        what: 'a request whose token is revoked during its response',
        outcome: 'revoked',
        uses: 1,
        play: () => scene.midStream().then(() => setActive(false)),
      },
      {
        what: 'a request whose token is revoked during its upload',
        outcome: 'revoked',
        uses: 1,
        play: () => scene.midUpload().then(() => setActive(false)),
      },
      { what: 'a hit', outcome: 'ok', uses: 0, hits: 1, play: cached },
      {
        what: 'a malformed request (400)',
        outcome: 'refused',
        uses: 0,
        play: () => scene.get(scene.secret, { Host: [] }),
      },
      {
        what: 'a body that is too large (413)',
        outcome: 'refused',
        uses: 0,
        play: () => scene.send(scene.post({ 'Content-Length': '99999999999' })),
      },
      {
        what: 'a small body that does not arrive (408)',
        outcome: 'timeout',
        uses: 0,
        play: async () => {
          const client = await scene.client(scene.post({ 'Content-Length': '10' }, 'begin'));
          await scene.inFlight(1);
          scene.daemon.clock.advance(30_000);
          expect((await client.response()).status).to.equal(408);
        },
      },
      {
        what: 'a large upload that stalls (408)',
        outcome: 'timeout',
        uses: 1,
        play: async () => {
          const client = await scene.midUpload();
          scene.daemon.clock.advance(30_000);
          expect((await client.response()).status).to.equal(408);
        },
      },
      { what: 'OPTIONS', outcome: 'ok', uses: 0, play: () => scene.send(head('OPTIONS /v1/models', scene.secret)) },
      {
        what: 'a request with a revoked token (401)',
        outcome: 'refused',
        uses: 0,
        play: async () => {
          await setActive(false);
          expectRefusal(await scene.get(), UNAUTHORIZED);
        },
      },
      {
        what: 'a request in an inactive project (403)',
        outcome: 'refused',
        uses: 0,
        play: async () => {
          await scene.daemon.manage('PATCH', `/manage/projects/${scene.project.id}`, { is_active: false });
          expect((await scene.get()).status).to.equal(403);
        },
      },
    ];
    for (const { what, outcome, uses, hits = 0, play } of ROWS) {
      it(`F21 ${what} ${uses === 0 ? 'does not count' : 'counts'} as a use${hits === 0 ? '' : ', and counts as a hit'}; its outcome is ${outcome}`, async () => {
        // A response that can be stored is completed after its client disconnects.
        await open({ HTTP_CACHE_ENABLED: String(hits === 1), REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s' });
        await play();
        const { ended } = scene.daemon;
        await eventually('its outcome is recorded', () => ended.length > 2 * hits);
        expect(ended.at(-1)?.outcome).to.equal(outcome);
        await scene.inFlight(0);
        if (hits === 0) expect(ended, 'records').to.have.lengthOf(1);
        const { request_count, cache_hit_count } = await scene.daemon.token(scene.token.id);
        expect({ request_count, cache_hit_count }).to.deep.equal({ request_count: uses, cache_hit_count: hits });
      });
    }

    it('F21 a request above the cap (429) or above a rate limit (429) does not count as a use', async () => {
      await open({ IP_RATE_LIMIT: '3' });
      await capped(1);
      expect((await scene.get()).status).to.equal(200);
      expectRefusal(await scene.get(), LIMIT_REACHED);
      const other = await scene.daemon.createToken(scene.project.id);
      expect((await scene.get(other.token)).status).to.equal(200);
      expect((await scene.get(other.token)).status).to.equal(429);
      expect([await scene.uses(), await scene.uses(other.id)]).to.deep.equal([1, 1]);
    });
  });

  describe('revocation', () => {
    it('F06 100 requests start while the token is revoked: none reaches the upstream after the acknowledgement', async () => {
      await open();
      const asked = atOnce(100);
      await eventually('some have arrived', () => scene.provider.received.length > 10);
      await setActive(false);
      expect(scene.daemon.daemon.admission.size.inFlight).to.equal(0);
      const uses = await scene.uses();
      const counts = statuses(await asked);
      expect((counts[200] ?? 0) + (counts[401] ?? 0)).to.equal(100);
      // Bytes sent before the acknowledgement may arrive after it, but no request has begun.
      expect(await scene.uses()).to.equal(uses);
      expect(scene.provider.received.length).to.be.at.most(uses);
      expectRefusal(await scene.get(), UNAUTHORIZED);
    });

    for (const [when, request] of Object.entries<() => string>({
      'while it is admitted': () => head('GET /v1/models', scene.secret),
      'while it is admitted, before its body arrives': () => scene.post({ 'Content-Length': '5' }),
    })) {
      // An admission is held up within the process.
      itInOneProcess(`F06 a request whose token is revoked ${when} is refused, with the outcome revoked`, async () => {
        await open();
        const { admission } = scene.daemon.daemon;
        admission.admit = async (secret) => {
          Reflect.deleteProperty(admission, 'admit');
          const pass = await admission.admit(secret);
          await setActive(false);
          return pass;
        };
        const client = await scene.client(request());
        await client.seen('HTTP/1.1 401');
        expect(scene.provider.received).to.deep.equal([]);
        expect((await scene.onlyRecord()).outcome).to.equal('revoked');
      });
    }

    it('F07 revocations and reactivations in turn, with requests meanwhile: the last state holds, and each change is recorded', async () => {
      await open();
      await revokeAndReactivate(scene, 15);
    });

    it('F12 a bulk revocation is one change with one record that has the count, and requests continue meanwhile', async () => {
      await open();
      const crowded = await scene.daemon.createProject();
      await addTokens(scene.daemon, crowded.id, 5_000);
      const revoking = scene.daemon.manage('POST', `/manage/projects/${crowded.id}/tokens/revoke`);
      for (const answer of await atOnce(20)) expect(answer?.status).to.equal(200);
      expect((await revoking).body).to.deep.equal({ message: '5000 tokens revoked', revoked_count: 5_000 });
      const records = (await auditOf(scene.daemon)).filter(
        ({ project_id, action }) => project_id === crowded.id && action !== 'project.create',
      );
      expect(records.map(({ count, outcome }) => [count, outcome])).to.deep.equal([[5_000, 'success']]);
      expect((await changesOf(scene.daemon)).filter(({ project_id }) => project_id === crowded.id)).to.have.length(2);
    });
  });

  it('F09 a token is valid until one millisecond before expires_at, and not from then on', async () => {
    await open();
    scene.token = await scene.daemon.createToken(scene.project.id, { duration_minutes: 1 });
    const { clock } = scene.daemon;
    const expiresAtMs = Date.parse(scene.token.expires_at);
    const now = clock.now.bind(clock);
    const at = async (ms: number) => {
      clock.now = () => ms;
      const { status } = await scene.get();
      clock.now = now;
      return status;
    };
    expect([await at(expiresAtMs - 1), await at(expiresAtMs), await at(expiresAtMs + 1)]).to.deep.equal([
      200, 401, 401,
    ]);
  });

  for (const [what, before] of [
    ['the maximum of 32 bits', 2 ** 31 - 2],
    ['twice that', 2 ** 32 - 1],
    ['the exact integers of a double', 2 ** 53 - 4],
  ] as const) {
    it(`F20 a count above ${what} continues correctly`, async () => {
      await open();
      await write(scene.daemon, 'UPDATE tokens SET request_count = $before, reserved = $before WHERE id = $id', {
        before,
        id: scene.token.id,
      });
      for (let n = 0; n < 3; n++) expect((await scene.get()).status).to.equal(200);
      const shown = () => scene.daemon.token(scene.token.id);
      await eventually('it is settled', async () => (await shown()).request_count === before + 3);
      scene.daemon.clock.advance(1_000);
      expect((await shown()).state).to.equal('active');
    });
  }

  it('F20 the largest possible cap is enforced', async () => {
    const most = 2_147_483_647;
    await open();
    scene.token = await scene.daemon.createToken(scene.project.id, { max_requests: most });
    await write(scene.daemon, 'UPDATE tokens SET request_count = $used, reserved = $used WHERE id = $id', {
      used: most - 2,
      id: scene.token.id,
    });
    expect(statuses(await atOnce(5))).to.deep.equal({ 200: 2, 429: 3 });
    expect(await scene.uses()).to.equal(most);
    const refused = await scene.daemon.manage('POST', '/manage/tokens', {
      project_id: scene.project.id,
      max_requests: most + 1,
    });
    problemOf(refused, 400, 'invalid_request');
  });
});
