import { VARY_BY_CARRIER } from '../../../daemon/http/request-head.js';
import { expect } from 'chai';
import { loadSettings } from '../../../config/settings.js';
import { MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { ask, head, type RawResponse } from '../../support/raw.js';
import { expectRefusal, EXPECTATION_FAILED, LIMIT_REACHED, MALFORMED, UNAUTHORIZED } from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { problemsWith } from '../../support/settings.js';

const APP = 'https://app.example';
const LOCAL = 'http://localhost:3000';
const CORS_ALLOWED_ORIGINS = `${APP},${LOCAL}`;

/** Origins that are not on the list, but look like one that is. */
const STRANGERS = [
  'https://other.example',
  'null',
  '*',
  '',
  'https://app.example.evil.example', // begins with a listed one
  'https://evil-app.example',
  'https://evil.app.example',
  'https://app.exampl',
  'https://app.example:443',
  'https://app.example:8443',
  'https://app.example/',
  'https://app.example@evil.example',
  'http://app.example',
  'HTTPS://APP.EXAMPLE',
  'app.example',
  `${APP},${LOCAL}`,
  `${APP} ${LOCAL}`,
  'http://localhost:30000',
  'http://localhost',
];

/** All CORS headers of a response with all their values. */
const corsOf = ({ fields }: RawResponse) =>
  fields.filter(([name]) => /^access-control-/i.test(name)).map(([name, value]) => `${name}: ${value}`);
const variesBy = (answer: RawResponse) => answer.header('vary')?.split(', ') ?? [];

const EXPOSED =
  'X-PROXY-CACHE, X-Request-ID, X-Upstream-Request-ID, Retry-After, X-Should-Retry, RateLimit, RateLimit-Policy, ' +
  'X-Token-Expires-At, X-Token-Requests-Remaining, X-Token-Warning, ETag, Link, X-Total-Count';
const readableBy = (origin: string) => [
  `Access-Control-Allow-Origin: ${origin}`,
  `Access-Control-Expose-Headers: ${EXPOSED}`,
];

function expectReadable(answer: RawResponse, origin: string): void {
  expect(corsOf(answer)).to.deep.equal(readableBy(origin));
  expect(variesBy(answer)).to.include('Origin');
}

function expectUnreadable(answer: RawResponse): void {
  expect(corsOf(answer)).to.deep.equal([]);
  expect(variesBy(answer)).to.include('Origin');
}

const preflight = (target: string, origin: string | readonly string[], fields: Record<string, string> = {}) =>
  head(`OPTIONS ${target}`, null, { Origin: origin, 'Access-Control-Request-Method': 'POST', ...fields });

describe('with CORS_ALLOWED_ORIGINS', () => {
  const scene = ProxyFixture.forSuite({ CORS_ALLOWED_ORIGINS });

  const manage = (start: string, fields: Record<string, string> = {}) =>
    scene.send(head(start, MANAGEMENT_TOKEN, fields), start.split(' ')[0]);

  describe('a forwarded response', () => {
    it('P10 can be read by pages of each listed origin, and names that origin', async () => {
      for (const origin of [APP, LOCAL]) expectReadable(await scene.get(scene.secret, { Origin: origin }), origin);
    });

    for (const origin of STRANGERS) {
      it(`P10 cannot be read by pages of ${JSON.stringify(origin)}, which is not listed`, async () => {
        const answer = await scene.get(scene.secret, { Origin: origin });
        expect(answer.status).to.equal(200);
        expectUnreadable(answer);
      });
    }

    it('P10 cannot be read if the request has two origins, even if both are listed', async () => {
      expectUnreadable(await scene.get(scene.secret, { Origin: [APP, APP] }));
    });

    it('P10 varies by origin even if the request had none, since a cache could serve it to pages', async () => {
      const answer = await scene.get();
      expectUnreadable(answer);
      expect(variesBy(answer)).to.deep.equal(['Origin', ...VARY_BY_CARRIER.split(', ')]);
    });

    it("P10 also has the upstream's Vary", async () => {
      scene.provider.answer = (_req, res) => void res.writeHead(200, { Vary: 'Accept-Encoding' }).end();
      const answer = await scene.get(scene.secret, { Origin: APP });
      expect(variesBy(answer)).to.deep.equal(['Accept-Encoding', 'Origin', ...VARY_BY_CARRIER.split(', ')]);
    });

    it("P10 has the proxy's policy only: the upstream's CORS headers are dropped", async () => {
      scene.provider.answer = (_req, res) => {
        res.writeHead(200, {
          'Access-Control-Allow-Origin': '*',
          'access-control-allow-credentials': 'true',
          'Access-Control-Expose-Headers': 'Set-Cookie',
          'Access-Control-Allow-Private-Network': 'true',
        });
        res.end();
      };
      expectReadable(await scene.get(scene.secret, { Origin: APP }), APP);
      expectUnreadable(await scene.get(scene.secret, { Origin: 'https://other.example' }));
      expectUnreadable(await scene.get());
      await scene.expectSpent(3);
    });
  });

  describe('a refusal', () => {
    const refusals: [string, typeof UNAUTHORIZED, () => Promise<RawResponse> | RawResponse][] = [
      ['of the shape', MALFORMED, () => scene.send(head('GET /v1//models', scene.secret, { Origin: APP }))],
      ['of the credential', UNAUTHORIZED, () => scene.get(null, { Origin: APP })],
      ['of an expectation', EXPECTATION_FAILED, () => scene.send(scene.post({ Origin: APP, Expect: '200-ok' }))],
    ];
    for (const [what, expected, send] of refusals) {
      it(`P10 ${what} can be read by pages of a listed origin`, async () => {
        const answer = await send();
        expectRefusal(answer, expected);
        expectReadable(answer, APP);
      });
    }

    it('P10 for a reached cap can be read by pages of a listed origin only', async () => {
      const { token: secret } = await scene.daemon.createToken(scene.project.id, { max_requests: 1 });
      await scene.get(secret);
      const answer = await scene.get(secret, { Origin: APP });
      expectRefusal(answer, LIMIT_REACHED);
      expectReadable(answer, APP);
      expectUnreadable(await scene.get(secret, { Origin: 'https://other.example' }));
      expectUnreadable(await scene.get(secret));
    });

    it('P10 for an upstream error has no headers of the upstream', async () => {
      scene.provider.answer = (_req, res) => void res.writeHead(401, { 'Access-Control-Allow-Origin': '*' }).end();
      const answer = await scene.get(scene.secret, { Origin: APP });
      expect(answer.status).to.equal(502);
      expectReadable(answer, APP);
    });

    it('P10 for invalid framing can be read by pages of a listed origin', async () => {
      const client = await scene.client(
        scene.post({ Origin: APP, 'Transfer-Encoding': 'chunked' }, '1\r\na\r\nzz\r\n'),
      );
      const answer = await client.response();
      expectRefusal(answer, MALFORMED);
      expectReadable(answer, APP);
    });
  });

  describe('a response of the management API', () => {
    for (const [what, status, start, fields] of [
      ['a success', 200, 'GET /manage/projects', {}],
      ['a 304', 304, 'GET /manage/projects', { 'If-None-Match': '*' }],
      ['a response to HEAD', 200, 'HEAD /manage/projects', {}],
      ['a 404', 404, 'GET /manage/nothing', {}],
      ['a 405', 405, 'PUT /manage/projects', {}],
      ['a refusal of the management token', 401, 'GET /manage/projects', { Authorization: 'Bearer wrong' }],
      ['a refusal of an undecodable path', 400, 'GET /manage/projects/%zz', {}],
      ['a refusal of the query', 400, 'GET /manage/projects?limit=0', {}],
    ] as const) {
      it(`P10 can be read by pages of a listed origin only: ${what}`, async () => {
        const answer = await manage(start, { ...fields, Origin: APP });
        expect(answer.status).to.equal(status);
        expectReadable(answer, APP);
        for (const origin of STRANGERS) expectUnreadable(await manage(start, { ...fields, Origin: origin }));
        expectUnreadable(await manage(start, fields));
      });
    }
  });

  describe('a preflight', () => {
    const targets = [
      '/v1',
      '/v1/models',
      '/v1/nothing?x=1',
      '*',
      '/manage',
      '/manage/projects',
      '/manage/nothing',
      '/manage/projects/%zz',
    ];

    for (const target of targets) {
      it(`P11 to ${target} is 204 without a credential, tells a listed origin what it may send, is not forwarded and not counted`, async () => {
        const answer = await scene.send(
          preflight(target, APP, { 'Access-Control-Request-Headers': 'authorization,content-type,x-stainless-os' }),
        );
        expect(answer.status).to.equal(204);
        expect(corsOf(answer)).to.deep.equal([
          `Access-Control-Allow-Origin: ${APP}`,
          'Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE',
          'Access-Control-Allow-Headers: authorization, content-type, x-stainless-os',
          'Access-Control-Max-Age: 600',
        ]);
        expect(variesBy(answer)).to.deep.equal(['Origin', 'Access-Control-Request-Headers']);
        expect(answer.header('x-request-id')).to.match(/^[\w-]+$/);
        await scene.expectSpent(0);
      });

      it(`P11 to ${target} allows nothing to origins that are not listed`, async () => {
        for (const origin of [...STRANGERS, [APP, APP]]) {
          const answer = await scene.send(preflight(target, origin));
          expect(answer.status).to.equal(204);
          expectUnreadable(answer);
        }
        await scene.expectSpent(0);
      });
    }

    it('P11 is not counted even with a secret', async () => {
      const fields = { Origin: APP, 'Access-Control-Request-Method': 'GET' };
      expect((await scene.send(head('OPTIONS /v1/models', scene.secret, fields))).status).to.equal(204);
      await scene.expectSpent(0);
    });

    it('P11 without header names allows none', async () => {
      const answer = await scene.send(preflight('/v1/models', APP));
      expect(answer.header('access-control-allow-headers')).to.equal(undefined);
      expect(answer.header('access-control-allow-origin')).to.equal(APP);
    });

    for (const target of ['/v1/models', '/manage/tokens']) {
      it(`P11 to ${target} allows valid header names only`, async () => {
        const names = [
          'x-a',
          'x b',
          '"x-c"',
          'x-d;e',
          '',
          '*',
          'x-é',
          '<script>',
          "x!#$%&'*+-.^_`|~",
          'x:f',
          '  x-g\t',
        ];
        const answer = await scene.send(preflight(target, APP, { 'Access-Control-Request-Headers': names.join(',') }));
        expect(answer.header('access-control-allow-headers')).to.equal("x-a, x!#$%&'*+-.^_`|~, x-g");
      });
    }

    it('P11 to the management API does not affect other OPTIONS requests, which need the token and return Allow', async () => {
      expect((await scene.send(head('OPTIONS /manage/projects', null))).status).to.equal(401);
      const answer = await manage('OPTIONS /manage/projects');
      expect({ status: answer.status, allow: answer.header('allow') }).to.deep.equal({
        status: 204,
        allow: 'POST, GET, HEAD, OPTIONS',
      });
    });
  });

  it('P10 adds no CORS headers to health endpoints, which are not for pages', async () => {
    const answer = await scene.send(head('GET /ready', null, { Origin: APP }));
    expect(corsOf(answer)).to.deep.equal([]);
    expect(answer.header('vary')).to.equal(undefined);
  });
});

describe('without CORS_ALLOWED_ORIGINS', () => {
  const scene = ProxyFixture.forSuite();

  it('P10 no page may read a response, and no response varies by origin', async () => {
    scene.provider.answer = (_req, res) => void res.writeHead(200, { 'Access-Control-Allow-Origin': '*' }).end();
    for (const answer of [
      await scene.get(scene.secret, { Origin: APP }),
      await scene.get(null, { Origin: APP }),
      await scene.send(head('GET /manage/projects', MANAGEMENT_TOKEN, { Origin: APP })),
    ]) {
      expect(corsOf(answer)).to.deep.equal([]);
      expect(variesBy(answer)).not.to.include('Origin');
    }
  });

  it('P11 a preflight is also 204, and allows nothing', async () => {
    for (const target of ['/v1/models', '*', '/manage/projects']) {
      const answer = await scene.send(preflight(target, APP));
      expect(answer.status).to.equal(204);
      expectUnreadable(answer);
    }
    await scene.expectSpent(0);
  });
});

describe('with MANAGEMENT_LISTEN_ADDR and CORS_ALLOWED_ORIGINS', () => {
  const scene = ProxyFixture.forSuite({ CORS_ALLOWED_ORIGINS, MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' });

  it('P11 each listener answers preflights for the paths that it serves', async () => {
    const { url, managementUrl } = scene.daemon;
    for (const [base, target, status] of [
      [url, '/v1/models', 204],
      [url, '/manage/projects', 404],
      [managementUrl, '/manage/projects', 204],
      [managementUrl, '/v1/models', 404],
    ] as const) {
      const answer = await ask(base, preflight(target, APP));
      expect(answer.status, `${target} at ${base === url ? 'LISTEN_ADDR' : 'MANAGEMENT_LISTEN_ADDR'}`).to.equal(status);
      expect(answer.header('access-control-allow-origin')).to.equal(status === 204 ? APP : undefined);
    }
  });
});

describe('CORS_ALLOWED_ORIGINS after a reload', () => {
  const scene = ProxyFixture.forSuite({ CORS_ALLOWED_ORIGINS });

  const apply = (env: Record<string, string>) => {
    scene.daemon.daemon.apply(loadSettings({ MANAGEMENT_TOKEN, ...env }).reloadable);
  };
  const allowed = async (origin: string) => {
    const answers = [
      await scene.get(scene.secret, { Origin: origin }),
      await scene.get(null, { Origin: origin }),
      await scene.send(head('GET /manage/projects', MANAGEMENT_TOKEN, { Origin: origin })),
      await scene.send(preflight('/v1/models', origin)),
      await scene.send(preflight('/manage/projects', origin)),
      await scene.send(preflight('*', origin)),
    ];
    return answers.map((answer) => answer.header('access-control-allow-origin'));
  };
  const NOWHERE = Array<undefined>(6).fill(undefined);
  const everywhere = (origin: string) => Array<string>(6).fill(origin);

  it('P10 P11 applies to the next request on every path', async () => {
    expect(await allowed(APP)).to.deep.equal(everywhere(APP));
    apply({ CORS_ALLOWED_ORIGINS: 'https://new.example' });
    expect(await allowed(APP)).to.deep.equal(NOWHERE);
    expect(await allowed('https://new.example')).to.deep.equal(everywhere('https://new.example'));
    apply({});
    expect(await allowed('https://new.example')).to.deep.equal(NOWHERE);
  });
});

describe('CORS_ALLOWED_ORIGINS', () => {
  it('P10 with * is refused at start, with credentials or without', () => {
    for (const origins of ['*', `${APP},*`, 'https://*.example', 'null']) {
      expect(problemsWith({ CORS_ALLOWED_ORIGINS: origins }).join()).to.match(
        /^CORS_ALLOWED_ORIGINS must be exact origins/,
      );
    }
  });
});
