import { expect } from 'chai';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { TokenSelf } from '../../daemon/api/token-self.js';
import { SDKS } from '../../cli/sdk-variables.js';
import { canary } from '../support/canaries.js';
import { daemonForSuite } from '../support/daemon.js';
import { perSuite } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { type Captured, llmp } from './captured.js';
import { responds, startStandIn } from './stand-in.js';

describe('llmp self', () => {
  const provider = perSuite(startProvider);
  const daemon = daemonForSuite(() => ({ upstream: provider.url }));
  let projectId: string;
  let token: WireTokenCreated;

  before(async () => {
    projectId = (await daemon.createProject()).id;
  });
  beforeEach(async () => {
    token = await daemon.createToken(projectId, { name: 'mine', duration_minutes: 60, max_requests: 10 });
  });

  const openAi = () => ({ OPENAI_API_KEY: token.token, OPENAI_BASE_URL: `${daemon.url}/v1` });
  const self = async (args = '', env: NodeJS.ProcessEnv = openAi()): Promise<Captured> => {
    const captured = await llmp(`self ${args}`.trim(), { env });
    expect(captured.out + captured.err, 'the secret').not.to.contain(token.token);
    return captured;
  };

  for (const [name, { keys, baseUrls, path }] of Object.entries(SDKS)) {
    for (const key of keys) {
      it(`reads the token and the address from the variables of ${name}'s SDK: ${key}`, async () => {
        const env = { [key]: token.token, [baseUrls[0]]: `${daemon.url}${path}` };
        const { exitCode, out, err } = await self('-o json', env);
        expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
        const shown = JSON.parse(out) as TokenSelf;
        expect(shown).to.include({ id: token.id, name: 'mine', state: 'active', requests_remaining: 10 });
      });
    }
  }

  it('shows all of it for people', async () => {
    const { out } = await llmp('self', {
      env: { ...openAi(), LLMP_ASCII: '1' },
      terminal: 100,
      nowMs: daemon.clock.now(),
    });
    for (const text of [token.id, 'mine', '* active', token.expires_at, '10']) expect(out).to.contain(text);
    expect(out).not.to.contain(token.token);
  });

  it('finds the daemon by --server or LLMP_SERVER if there is no base URL, and needs no management token', async () => {
    const { OPENAI_API_KEY } = openAi();
    expect((await self('-o id', { OPENAI_API_KEY, LLMP_SERVER: daemon.url })).out).to.equal(`${token.id}\n`);
    const env = { OPENAI_API_KEY, OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' };
    expect((await self(`-o id --server ${daemon.url}`, env)).out).to.equal(`${token.id}\n`);
    expect((await self('', env)).exitCode).to.equal(6);
    const ignored = await self('--management-token-file x', env);
    expect(ignored.err).to.contain('warning: --management-token-file has no effect on llmp self');
  });

  it('keeps a path in front of /v1', async () => {
    const standIn = await startStandIn();
    standIn.answer = responds({}, 404);
    const { exitCode } = await self('', { ...openAi(), OPENAI_BASE_URL: `${standIn.url}/llm/v1/` });
    expect(exitCode).to.equal(4);
    expect(standIn.asked.map(({ url }) => url)).to.deep.equal(['/llm/token/self']);
    await standIn.stop();
  });

  it('takes the SDK that --for names, and else the first with a token', async () => {
    const other = await daemon.createToken(projectId);
    const env = { ...openAi(), ANTHROPIC_AUTH_TOKEN: other.token, ANTHROPIC_BASE_URL: daemon.url };
    expect((await self('-o id', env)).out).to.equal(`${token.id}\n`);
    expect((await self('-o id --for anthropic', env)).out).to.equal(`${other.id}\n`);
    expect((await self('-o id', { ...env, OPENAI_API_KEY: canary('upstream') })).out).to.equal(`${other.id}\n`);
  });

  it('sends no other key anywhere', async () => {
    const real = canary('upstream');
    const standIn = await startStandIn();
    const { exitCode, err } = await self('', { OPENAI_API_KEY: real, OPENAI_BASE_URL: `${standIn.url}/v1` });
    expect({ exitCode, asked: standIn.asked }).to.deep.equal({ exitCode: 2, asked: [] });
    expect(err).to.contain('OPENAI_API_KEY has another key').and.not.to.contain(real);
    expect((await self('', {})).err).to.contain('there is no token in OPENAI_API_KEY, ANTHROPIC_API_KEY');
    await standIn.stop();
  });

  it('--warn exits with 9 if less is left', async () => {
    expect((await self('--warn 90%')).exitCode).to.equal(0);
    for (let i = 0; i < 9; i++) await daemon.call(token.token);
    expect(await self('-o id --warn 10%')).to.deep.equal({ exitCode: 0, out: `${token.id}\n`, err: '' });
    const { exitCode, err } = await self('-o id --warn 11%');
    expect({ exitCode, err }).to.deep.equal({
      exitCode: 9,
      err: 'llmp: warning: 10% of the requests is left, less than 11%\n',
    });
    token = await daemon.createToken(projectId, { duration_minutes: 10 });
    expect((await self('--warn 9m')).exitCode).to.equal(0);
    expect((await self('--warn 11m')).exitCode).to.equal(9);
    daemon.clock.advance(560_000);
    expect((await self('--warn 5%')).exitCode).to.equal(0);
    const late = await self('--warn 10%');
    expect(late.exitCode).to.equal(9);
    expect(late.err).to.match(/warning: [56]% of the lifetime is left, less than 10%/);
    for (const wrong of ['10', '101%', '-5%', 'much']) expect((await self(`--warn=${wrong}`)).exitCode).to.equal(2);
  });

  it('says why a token is refused', async () => {
    await daemon.manage('DELETE', `/manage/tokens/${token.id}`);
    const { exitCode, err } = await self();
    expect(exitCode).to.equal(1);
    expect(err).to.contain('refused the token in OPENAI_API_KEY').and.to.contain('unknown, expired or revoked');
  });

  it('says that the project is inactive, and that the daemon asks to wait', async () => {
    for (let i = 0; i < 60; i++) await daemon.call(token.token, '/token/self');
    expect((await self()).exitCode).to.equal(7);
    await daemon.manage('PATCH', `/manage/projects/${projectId}`, { is_active: false });
    const { exitCode, err } = await self();
    expect({ exitCode, err: err.split('\n')[0] }).to.deep.equal({
      exitCode: 5,
      err: 'llmp: the project of the token is inactive',
    });
    await daemon.manage('PATCH', `/manage/projects/${projectId}`, { is_active: true });
  });
});
