/** Trusts on the command line, and jobs that exchange a JWT for a token. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WireToken, WireTrust } from '../../daemon/api/contract.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { StandInIssuer } from '../support/jwt-issuer.js';
import { perSuite } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { commandsAt, llmp, type Situation } from './captured.js';
import { responds, startStandIn } from './stand-in.js';

const WEB = { repository: 'acme/web', ref: 'refs/heads/main', run_id: '17' };

let issuer: StandInIssuer;
let daemon: TestDaemon;
let commands: ReturnType<typeof commandsAt>;
const provider = perSuite(startProvider);

before(async () => {
  issuer = await StandInIssuer.start();
});
after(() => issuer.stop());
beforeEach(async () => {
  daemon = await startDaemon({ upstream: provider.url });
  commands = commandsAt(daemon);
  await daemon.createProject({ name: 'web' });
});
afterEach(() => daemon.stop());

const TERMS = ['--audience', 'llmp', '--match', 'repository=acme/web', '--match', 'ref=refs/heads/main'];
const NAME = ['--name', 'gha {repository}#{run_id}'];
const create = (...more: string[]) =>
  commands.json<WireTrust>(['trust', 'create', '--issuer', issuer.url, ...TERMS, ...NAME, ...more]);
const tokens = () => commands.json<WireToken[]>('token list');

/** A file with a JWT of the issuer. */
async function jwtFile(claims: Record<string, unknown> = WEB): Promise<string> {
  const file = join(temporaryFolder(), 'jwt');
  writeFileSync(file, `${await issuer.jwt(claims, daemon.clock.now())}\n`);
  return file;
}

/** A command of a job, which has no management token. */
const inJob = (args: readonly string[], { env, ...situation }: Situation = {}) =>
  llmp(args, {
    env: { PATH: process.env.PATH, LLMP_SERVER: daemon.url, ...env },
    nowMs: daemon.clock.now(),
    interrupted: new Promise(() => undefined),
    ...situation,
  });

describe('llmp trust, against a daemon', () => {
  it('creates, shows, changes, switches off and deletes a trust', async () => {
    const trust = await create('--duration', '30m', '--max-requests', '200', '--max-active', '20', '--budget-usd', '1');
    expect(trust).to.deep.include({
      issuer: issuer.url,
      audience: 'llmp',
      match: { repository: 'acme/web', ref: 'refs/heads/main' },
      project_name: 'web',
      name: 'gha {repository}#{run_id}',
      duration_minutes: 30,
      max_requests: 200,
      max_active: 20,
      per_hour: null,
      budget: { usd: '1.00', period: 'none', mode: 'soft' },
    });
    const shown = await commands.here(`trust show ${trust.id.slice(0, 8)} --no-color`, { terminal: 120 });
    for (const words of [
      'match +repository=acme/web, ref=refs/heads/main',
      'jwks_file +published by the issuer',
      'lifetime +30m',
      'per_hour +unlimited',
      'budget +[$]1, soft; at the limit, new requests are refused with 402; requests in flight finish, and may exceed the budget',
    ]) {
      expect(shown.out).to.match(new RegExp(`^${words}$`, 'm'));
    }
    const list = await commands.here('trust list --no-color', { terminal: 160, env: { LANG: 'C.UTF-8' } });
    expect(list.out).to.match(/^\w{8} +repository=acme\/web, ref=\S+ +● active +web /m);

    const { err } = await commands.here(`trust update ${trust.id} --duration 2h --per-hour 60 --max-active none`);
    expect(err).to.contain(
      `it exchanges JWTs with repository=acme/web, ref=refs/heads/main. See: llmp trust show ${trust.id}`,
    );
    await commands.here(['trust', 'update', trust.id, '--match', 'sub=a,b=c', '--budget-usd', 'none', '--inactive']);
    expect(await commands.json<WireTrust>(`trust show ${trust.id}`)).to.deep.include({
      match: { sub: 'a,b=c' },
      duration_minutes: 120,
      max_active: null,
      per_hour: 60,
      budget: null,
      is_active: false,
    });
    const gone = await commands.here(`trust delete ${trust.id}`);
    expect(gone.err).to.match(
      /^Deleted \w{8} \(gha \{repository\}#\{run_id\}\)\. Tokens that exist stay as they are\.\n$/,
    );
    expect(await commands.ids('trust list')).to.deep.equal([]);
  });

  it('is refused without what it needs', async () => {
    for (const [args, exitCode, why] of [
      [['--audience', 'llmp', '--match', 'a=b'], 2, 'no issuer given'],
      [['--issuer', issuer.url, '--match', 'a=b'], 2, 'no audience given'],
      [['--issuer', issuer.url, '--audience', 'llmp'], 2, 'no claims given'],
      [['--issuer', issuer.url, ...TERMS, '--match', 'repository'], 2, '--match must be CLAIM=VALUE'],
      [['--issuer', issuer.url, ...TERMS, '--match', 'ref=x'], 2, '--match names "ref" twice'],
      [['--issuer', issuer.url, '--audience', 'llmp', '--match', 'ref=x'], 1, 'match needs a claim that identifies'],
    ] as const) {
      const captured = await commands.here(['trust', 'create', ...args]);
      expect(captured.exitCode, why).to.equal(exitCode);
      expect(captured.err).to.contain(why);
    }
  });
});

describe('llmp token exchange, against a daemon', () => {
  it('prints a token for a JWT, without a management token', async () => {
    await create('--duration', '30m');
    const only = await inJob(['token', 'exchange', '--jwt-file', await jwtFile(), '-q']);
    expect(only.exitCode, only.err).to.equal(0);
    expect(only.out).to.match(/^sk-wt-[0-9A-Za-z]{49}\n$/);
    const piped = await inJob(['token', 'exchange', '--jwt-file', '-', '--json'], {
      stdin: await issuer.jwt(WEB, daemon.clock.now()),
    });
    expect(JSON.parse(piped.out)).to.include({ token_type: 'Bearer', expires_in: 1800 });
    expect((await tokens()).map(({ name }) => name)).to.deep.equal(['gha acme/web#17', 'gha acme/web#17']);
    expect((await daemon.call(only.out.trim())).status).to.equal(200);
  });

  it('says why there is no token, and what to do', async () => {
    const file = await jwtFile();
    const exchange = (jwt: string) => inJob(['token', 'exchange', '--jwt-file', jwt, '-q']);
    const none = await exchange(file);
    expect(none).to.include({ exitCode: 1, out: '' });
    expect(none.err).to.match(
      /^llmp: no trust has the issuer of this JWT\n {2}The issuer, the audience and all claims must match/,
    );
    await create('--max-active', '1');
    await exchange(file);
    const used = await exchange(file);
    expect(used.exitCode).to.equal(1);
    expect(used.err).to.contain('\n  A JWT can be exchanged once: ask its issuer for another\n');
    const many = await exchange(await jwtFile());
    expect(many.exitCode).to.equal(7);
    expect(many.err).to.contain('the maximum of this trust is reached');
    await create();
    expect((await exchange(await jwtFile())).err).to.contain('several trusts match this JWT');
    expect((await exchange(await jwtFile({ ...WEB, exp: 1 }))).err).to.contain('  Ask the issuer for a new JWT');
  });

  it('sends nothing that is not a JWT', async () => {
    const file = join(temporaryFolder(), 'key');
    writeFileSync(file, 'sk-not-a-jwt');
    const nowhere = { env: { LLMP_SERVER: 'http://127.0.0.1:9' } };
    for (const [args, why] of [
      [['--jwt-file', file], `there is no JWT in ${file}`],
      [[], 'no JWT given'],
      [['--jwt-file', file, '--audience', 'llmp'], '--jwt-file and --audience exclude each other'],
      [['--audience', 'llmp'], 'ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN are not set'],
    ] as const) {
      const { exitCode, err } = await inJob(['token', 'exchange', ...args], nowhere);
      expect(exitCode, why).to.equal(2);
      expect(err).to.contain(why);
    }
  });
});

describe('llmp run --exchange, against a daemon', () => {
  const github = perSuite(() => startStandIn());
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => inJob(['run', '--exchange', ...args], { env });
  let told: string;
  beforeEach(() => (told = join(temporaryFolder(), 'token.txt')));
  /** A command that writes what it was given to a file. */
  const tell = () => [
    'sh',
    '-c',
    `echo "$OPENAI_API_KEY $OPENAI_BASE_URL $ACTIONS_ID_TOKEN_REQUEST_TOKEN." > ${told}; exit 3`,
  ];
  /** @returns the secret of the token. */
  function secretTold(): string {
    const [, secret = '', rest] = /^(sk-wt-[0-9A-Za-z]{49}) (.*)\n$/.exec(readFileSync(told, 'utf8')) ?? [];
    expect(rest).to.equal(`${daemon.url}/v1 .`);
    return secret;
  }

  it('runs a command with a token for a JWT, and ends the token', async () => {
    await create();
    const { exitCode, out, err } = await run(['--jwt-file', await jwtFile(), '--', ...tell()]);
    expect(exitCode, err).to.equal(3);
    expect(out).to.equal('');
    expect(err).to.equal('Set OPENAI_API_KEY, OPENAI_BASE_URL for sh.\nUsed 0 requests. Ended the token.\n');
    expect((await daemon.call(secretTold())).status).to.equal(401);
    expect((await tokens()).map(({ state }) => state)).to.deep.equal(['revoked']);
  });

  it('asks GitHub Actions for the JWT, and keeps its credential from the command', async () => {
    await create();
    github.answer = responds({ value: await issuer.jwt(WEB, daemon.clock.now()) });
    const { exitCode, err } = await run(['--audience', 'llmp', '--', ...tell()], {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${github.url}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'credential-of-the-job',
    });
    expect(exitCode, err).to.equal(3);
    expect(secretTold()).not.to.equal('');
    const [{ url, headers } = { url: '', headers: {} }] = github.asked;
    expect(url).to.equal('/token?api-version=2.0&audience=llmp');
    expect(headers.authorization).to.equal('Bearer credential-of-the-job');
  });

  it('ends the token if the command cannot be started, or cannot speak the API of the project', async () => {
    await create();
    expect(await run(['--jwt-file', await jwtFile(), '--', '/no/such/program'])).to.include({ exitCode: 127 });
    expect(await run(['--jwt-file', await jwtFile(), '--', 'claude'])).to.include({ exitCode: 2 });
    expect((await tokens()).map(({ state }) => state)).to.deep.equal(['revoked', 'revoked']);
  });

  it('takes the terms from the trust, and exchanges nothing for a dry run', async () => {
    const file = await jwtFile();
    for (const [args, why] of [
      [['--exchange', '--jwt-file', file, '--duration', '1h'], '--exchange and --duration exclude each other'],
      [['--exchange', '--jwt-file', file, '--project-id', 'web'], '--exchange and --project-id exclude each other'],
      [['--jwt-file', file], '--jwt-file needs --exchange'],
      [['--exchange', '--jwt-file', file, '-n'], '--dry-run with --exchange needs --for'],
    ] as const) {
      const { exitCode, err } = await inJob(['run', ...args, '--', 'true']);
      expect(exitCode, why).to.equal(2);
      expect(err).to.contain(why);
    }
    const dry = await run(['--jwt-file', file, '-n', '--for', 'openai', '--', 'true']);
    expect(dry.out).to.contain('export OPENAI_API_KEY=');
    expect(await tokens()).to.deep.equal([]);
  });
});
