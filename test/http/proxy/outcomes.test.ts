import { expect } from 'chai';
import type { Outcome } from '../../../daemon/core/events.js';
import { head } from '../../support/raw.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { itInOneProcess } from '../../support/test-workers.js';

const SECOND_MS = 1000;

// I3: exactly one outcome, however a request ends.
describe('every request has exactly one outcome', () => {
  let scene: ProxyFixture;

  before(async () => {
    scene = await ProxyFixture.open({ REQUEST_TIMEOUT: '60s', CLIENT_BODY_TIMEOUT: '30s' });
  });
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  after(() => scene.close());

  const revoke = () => scene.daemon.manage('DELETE', `/manage/tokens/${scene.token.id}`);
  /** A request whose token is revoked after admission has decided, but before the proxy continues. */
  const revokedOnAdmission = async (request: string) => {
    const { admission } = scene.daemon.daemon;
    admission.admit = async (secret) => {
      Reflect.deleteProperty(admission, 'admit');
      const pass = await admission.admit(secret);
      await revoke();
      return pass;
    };
    const client = await scene.client(request);
    await client.seen('HTTP/1.1 401');
    expect(scene.provider.received).to.deep.equal([]);
  };
  const answering = (status: number) => () => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(status).end('{}');
    };
    return scene.get();
  };
  const SCENES: [what: string, outcome: Outcome, play: () => Promise<unknown>][] = [
    ['a successful response', 'ok', answering(200)],
    ["the provider's 404 (finding A13)", 'upstream_refused', answering(404)],
    ["the provider's 429 (finding A13)", 'upstream_refused', answering(429)],
    ["the provider's 503", 'upstream_error', answering(503)],
    ["the provider's 401", 'upstream_error', answering(401)],
    ['a bad token', 'refused', () => scene.get(null)],
    ['a bad shape', 'refused', () => scene.get(scene.secret, { Host: [] })],
    [
      'a client that disconnects before headers',
      'client_closed',
      async () => {
        (await scene.beforeHeaders()).destroy();
      },
    ],
    [
      'a client that disconnects mid-stream',
      'client_closed',
      async () => {
        (await scene.midStream()).client.destroy();
      },
    ],
    [
      'a client that disconnects mid-upload',
      'client_closed',
      async () => {
        (await scene.midUpload()).destroy();
      },
    ],
    [
      'an upstream that is silent before headers',
      'timeout',
      async () => {
        await scene.beforeHeaders();
        scene.daemon.clock.advance(60 * SECOND_MS);
      },
    ],
    [
      'an upstream that stalls mid-stream',
      'timeout',
      async () => {
        await scene.midStream();
        scene.daemon.clock.advance(60 * SECOND_MS);
      },
    ],
    [
      'a client whose upload stops',
      'timeout',
      async () => {
        await scene.midUpload();
        scene.daemon.clock.advance(30 * SECOND_MS);
      },
    ],
    [
      'an upstream that breaks off',
      'truncated',
      async () => {
        (await scene.midStream()).upstream.destroy();
      },
    ],
    ['a revocation before headers', 'revoked', () => scene.beforeHeaders().then(revoke)],
    ['a revocation mid-stream', 'revoked', () => scene.midStream().then(revoke)],
    ['a revocation during admission', 'revoked', () => revokedOnAdmission(head('GET /v1/models', scene.secret))],
    [
      'a revocation during admission, before the body arrives',
      'revoked',
      () => revokedOnAdmission(scene.post({ 'Content-Length': '5' })),
    ],
    ['a revocation mid-upload', 'revoked', () => scene.midUpload().then(revoke)],
  ];
  for (const [what, outcome, play] of SCENES) {
    // An admission is held up within the process.
    const itIfPossible = what.includes('during admission') ? itInOneProcess : it;
    itIfPossible(`${outcome}: ${what}`, async () => {
      await play();
      expect((await scene.onlyRecord()).outcome).to.equal(outcome);
      await scene.end();
      await scene.onlyRecord();
    });
  }
});
