import { expect } from 'chai';
import type { WireIncidents } from '../../../daemon/api/contract.js';
import { llmp } from '../../cli/captured.js';
import { MANAGEMENT_TOKEN, startDaemon } from '../../support/daemon.js';
import { eventually } from '../../support/eventually.js';
import { type Answer, json } from '../../support/provider.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

const MINUTE_MS = 60_000;

describe('what is wrong now', () => {
  let scene: ProxyFixture;
  let requests: number;

  beforeEach(async () => {
    scene = await ProxyFixture.open({});
    requests = 0;
    // So that the last hour is complete.
    scene.daemon.clock.advance(120 * MINUTE_MS);
  });
  afterEach(() => scene.close());

  const answering =
    (status: number): Answer =>
    (_req, res) => {
      json(res, status, {});
    };
  async function send(times: number, secret: string | null = scene.secret, status = 200): Promise<void> {
    scene.provider.answer = answering(status);
    for (let n = 0; n < times; n++) await scene.get(secret);
    requests += times;
    await eventually('they have ended', () => scene.daemon.ended.length === requests);
  }
  const incidents = async () => (await scene.daemon.manage('GET', '/manage/incidents')).body as WireIncidents;
  const briefly = async () =>
    (await incidents()).incidents.map(({ kind, why, failures, requests: of, tokens }) => [
      ...[kind, why, failures, of, tokens],
    ]);
  const status = async (args = 'status') =>
    (await llmp(args, { env: { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN, LANG: 'C.UTF-8' } })).out;

  it('is nothing while requests succeed, and a few fail', async () => {
    await send(30);
    await send(1, scene.secret, 500);
    expect(await briefly()).to.deep.equal([]);
    expect(await status()).to.match(/^problems +nothing is wrong$/m);
    expect(JSON.parse(await status('status --json'))).to.deep.include({ problems: [] });
  });

  it('is a refused key at once, and comes before projects, tokens and unknown clients that fail', async () => {
    const other = await scene.daemon.createProject({ name: 'other' });
    const [one, two, three] = await Promise.all(
      ['one', 'two', 'three'].map((name) => scene.daemon.createToken(other.id, { name })),
    );
    await send(2, one!.token);
    await send(3, two!.token, 404);
    await send(2, one!.token, 500);
    await send(2, two!.token, 500);
    await scene.daemon.manage('DELETE', `/manage/tokens/${three!.id}`);
    await send(5, three!.token);
    await send(4, 'sk-wt-unknown');
    await send(1, scene.secret, 401);
    expect(await briefly()).to.deep.equal([
      ['key_refused', 'key refused', 1, 1, 1],
      ['failing_project', 'provider error', 4, 14, 2],
      ['failing_token', 'revoked', 5, 5, 1],
      ['failing_token', 'provider refused', 3, 5, 1],
      ['unknown_tokens', 'unknown token', 4, 19, 1],
    ]);
    const [key, , revoked] = (await incidents()).incidents;
    expect(key).to.include({ project_id: scene.project.id, project_name: scene.project.name, token_id: null });
    expect(key!.remedy).to.contain('give the project a key');
    expect(revoked).to.include({ token_id: three!.id, token_name: 'three', project_name: 'other' });
    const shown = await status();
    expect(shown).to.match(/^problems +project .*: key refused \(1 of 1 request\); give the project a key/m);
    expect(shown).to.match(/^ +token three in other: revoked \(5 of 5 requests\); reactivate the token/m);
    expect(shown).to.match(/^ +unknown clients: unknown token \(4 of 19 requests\); /m);
  });

  it('is a token that is expired, although its client is told no more than an unknown one', async () => {
    const { id, token } = await scene.daemon.createToken(scene.project.id, { duration_minutes: 1 });
    await scene.daemon.call(token); // Known before it expires.
    requests += 1;
    scene.daemon.clock.advance(2 * MINUTE_MS);
    await send(3, token);
    const found = (await incidents()).incidents.find(({ token_id: tokenId }) => tokenId === id);
    expect(found).to.include({ kind: 'failing_token', why: 'expired', failures: 3 });
  });

  it('is over a quarter of an hour after the last failure', async () => {
    await send(5, scene.secret, 500);
    scene.daemon.clock.advance(13 * MINUTE_MS);
    expect(await briefly()).to.have.lengthOf(1);
    scene.daemon.clock.advance(3 * MINUTE_MS);
    expect(await briefly()).to.deep.equal([]);
  });

  it('is the same after a restart', async () => {
    await send(3, scene.secret, 404);
    await send(4, scene.secret, 500);
    const { incidents: before } = await incidents();
    expect(before.map(({ why }) => why)).to.deep.equal(['provider error', 'provider refused']);
    await scene.daemon.stop();
    scene.daemon = await startDaemon({ dir: scene.daemon.dir, clock: scene.daemon.clock });
    expect((await incidents()).incidents).to.deep.equal(before);
  });
});
