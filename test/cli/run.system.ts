import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { DECLARED, type Setting } from '../../config/declarations.js';
import { PROVIDER_KEYS } from '../../cli/sdk-variables.js';
import { PROVIDERS } from '../../daemon/api/providers.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { type Provider, startProvider } from '../support/provider.js';
import { llmp } from './captured.js';
import { ended, MAIN, type Process, start } from './processes.js';
import { answerJson, refuse, type StandIn, startStandIn } from './stand-in.js';
import { aWireToken } from '../support/factories.js';

const NODE = process.execPath;

/** A program that prints `ready` and the signal that it receives, and exits with 3. */
const HEARS = `for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => { console.log(signal); setTimeout(() => process.exit(3), 50); });
console.log('ready');
setInterval(() => undefined, 1000);`;

describe('llmp run', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  beforeEach(async () => {
    daemon = await startDaemon({ upstream: provider.url });
    await daemon.createProject();
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
  });
  afterEach(() => daemon.stop());

  const run = (args: readonly string[], more: NodeJS.ProcessEnv = {}) => start(['run', ...args], { ...env, ...more });
  /** The same in this process: for what does not depend on signals and streams. */
  const inside = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    llmp(['run', ...args], {
      env: { PATH: process.env.PATH, ...env, ...more },
      interrupted: new Promise(() => undefined),
    });
  const tokens = async () => (await daemon.manage('GET', '/manage/tokens')).body as WireToken[];

  async function onlyToken(): Promise<WireToken> {
    const [only, ...others] = await tokens();
    expect(others).to.deep.equal([]);
    if (!only) throw new Error('no token was issued');
    return only;
  }

  /** Waits for its first output. */
  async function printed(child: Process): Promise<string> {
    const [piece] = (await once(child.stdout, 'data')) as [Buffer];
    return piece.toString().trim();
  }

  describe('the command', () => {
    const CALLS = `const { OPENAI_API_KEY: key, OPENAI_BASE_URL: url } = process.env;
for (let i = 0; i < 2; i++) {
  const answer = await fetch(url + '/models', { headers: { authorization: 'Bearer ' + key } });
  console.log(answer.status, (await answer.json()).data[0].id);
}`;

    it('gets a working key and base URL in its environment, and its use is reported at the end', async () => {
      const command = ['--max-requests', '10', '--', NODE, '--input-type=module', '-e', CALLS];
      const { exitCode, out, err } = await inside(command);
      expect(out).to.equal('200 gpt-test\n200 gpt-test\n');
      const token = await onlyToken();
      expect(token).to.include({ state: 'revoked', request_count: 2, max_requests: 10, name: 'node' });
      expect(err).to.equal(`Used 2 of 10 requests. Revoked ${token.id.slice(0, 8)}.\n`);
      expect(exitCode).to.equal(0);
    });

    it('does not get the management token from any source', async () => {
      const file = join(temporaryFolder(), 'management-token');
      writeFileSync(file, MANAGEMENT_TOKEN);
      const SHOWS = 'console.log(Object.keys(process.env).filter((name) => /MANAGEMENT|OPENAI/.test(name)).join())';
      for (const more of [{}, { MANAGEMENT_TOKEN: undefined, MANAGEMENT_TOKEN_FILE: file }]) {
        const { out } = await inside(['--', NODE, '-e', SHOWS], more);
        expect(out).to.equal('OPENAI_API_KEY,OPENAI_BASE_URL\n');
      }
    });

    it('findings-3 A13: gets none of the secrets of llmp, and the rest of the environment', async () => {
      const secret = canary('management');
      const ofLlmp: NodeJS.ProcessEnv = { CREDENTIALS_DIRECTORY: '/run/credentials/llmp.service' };
      for (const { name, isSecret, kind } of Object.values<Setting<unknown>>(DECLARED)) {
        if (name === 'MANAGEMENT_TOKEN' || (!isSecret && !kind.secretsIn)) continue;
        ofLlmp[name] = isSecret
          ? secret
          : `${name === 'DATABASE_URL' ? 'postgres' : 'http'}://llmp:${secret}@db.test/llmp`;
        ofLlmp[`${name}_FILE`] = '/nowhere';
      }
      expect(Object.keys(ofLlmp)).to.include.members(['ENCRYPTION_KEY', 'REDIS_PASSWORD_FILE', 'DATABASE_URL']);
      const ofUser = {
        APP_SECRET: 'mine',
        HTTPS_PROXY: 'http://proxy.test',
        LOG_LEVEL: 'debug',
        AUDIT_LOG_FILE: '/log',
      };
      const { out } = await ended(
        run(['--', NODE, '-p', 'JSON.stringify({ ...process.env, OPENAI_API_KEY: 0 })'], { ...ofLlmp, ...ofUser }),
      );
      const inherited = JSON.parse(out) as NodeJS.ProcessEnv;
      expect(Object.keys(inherited).filter((name) => name in ofLlmp || name.startsWith('MANAGEMENT_'))).to.deep.equal(
        [],
      );
      expect(inherited).to.include(ofUser);
      // A database without a password is no secret, and may be the user's own.
      const own = { DATABASE_URL: 'postgres://db.test/app', ...ofUser };
      expect((await inside(['--', NODE, '-p', 'process.env.DATABASE_URL'], own)).out).to.equal(`${own.DATABASE_URL}\n`);
    });

    describe('and the SDKs', () => {
      const SHOWS = `const shown = {};
for (const [name, value] of Object.entries(process.env))
  if (/_KEY$|_TOKEN$|_BASE|_ENDPOINT$/.test(name)) shown[name] = value.startsWith('sk-wt-') ? 'token' : value;
console.log(JSON.stringify(shown));`;
      const REAL = Object.fromEntries(PROVIDER_KEYS.map((name) => [name, canary('upstream')]));
      const variables = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
        const { out, err, exitCode } = await ended(
          run([...args, '--', NODE, '-e', SHOWS], { ...REAL, OPENAI_API_BASE: 'https://api.example/v1', ...more }),
        );
        expect(exitCode, err).to.equal(0);
        return JSON.parse(out) as unknown;
      };

      it('get the token in place of every key of a provider', async () => {
        expect(await variables(['--for', 'openai'])).to.deep.equal({
          OPENAI_API_KEY: 'token',
          OPENAI_BASE_URL: `${daemon.url}/v1`,
        });
        const OTHERS = [
          'ANTHROPIC_AUTH_TOKEN',
          'GOOGLE_API_KEY',
          'GROQ_API_KEY',
          'MISTRAL_API_KEY',
          'OPENROUTER_API_KEY',
        ];
        expect(PROVIDER_KEYS).to.include.members(OTHERS);
        expect(await variables(['--for', 'openai,anthropic,gemini,azure'])).to.deep.equal({
          OPENAI_API_KEY: 'token',
          OPENAI_BASE_URL: `${daemon.url}/v1`,
          ANTHROPIC_API_KEY: 'token',
          ANTHROPIC_BASE_URL: daemon.url,
          GEMINI_API_KEY: 'token',
          GOOGLE_GEMINI_BASE_URL: daemon.url,
          GOOGLE_GENERATIVE_AI_API_KEY: 'token',
          AZURE_OPENAI_API_KEY: 'token',
          AZURE_OPENAI_ENDPOINT: daemon.url,
        });
      });

      for (const [provider, variable] of [
        ['anthropic', 'ANTHROPIC_BASE_URL'],
        ['gemini', 'GOOGLE_GEMINI_BASE_URL'],
        ['groq', 'OPENAI_BASE_URL'],
      ] as const) {
        it(`are those of the project's provider by default: ${provider}`, async () => {
          const { baseUrl: upstream_base_url, auth: upstream_auth } = PROVIDERS[provider];
          const fields = { name: provider, api_key: canary('upstream'), upstream_base_url, upstream_auth };
          expect((await daemon.manage('POST', '/manage/projects', fields)).status).to.equal(201);
          const shown = await variables(['--project-id', provider], { OPENAI_API_BASE: undefined });
          expect(shown).to.have.property(variable);
          const others = Object.keys(shown as object).filter((name) => !/_GENERATIVE_AI_/.test(name));
          expect(others).to.have.lengthOf(2);
        });
      }

      it('cannot share one --base-url', async () => {
        const both = ['run', '--for', 'openai,gemini', '--base-url', 'https://llm.example', '--', 'true'];
        const { exitCode, err } = await llmp(both, { env });
        expect({ exitCode, err: err.split('\n')[0] }).to.deep.equal({
          exitCode: 2,
          err: 'llmp: --base-url is for one SDK',
        });
        expect(await tokens()).to.deep.equal([]);
      });
    });

    it('inherits the streams and the original umask', async () => {
      const lines = Array.from({ length: 20_000 }, (_, line) => `line ${line}\n`).join('');
      const command = `node "$0" run -q -- sh -c 'cat; umask; echo done >&2'`;
      const child = spawn('sh', ['-c', `umask 027; PATH='${process.env.PATH ?? ''}' ${command}`, MAIN], {
        env: { PATH: process.env.PATH, ...env },
      });
      child.stdin.end(lines);
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
      expect(out === `${lines}0027\n`, 'all of it comes through').to.equal(true);
      expect(err).to.equal('done\n');
    });

    it('gets its arguments unchanged, also without a leading --', async () => {
      const SHOWS = 'console.log(JSON.stringify(process.argv.slice(1)))';
      for (const front of [['--', NODE], [NODE]]) {
        const { out } = await inside([...front, '-e', SHOWS, '--', '-q', '--json', '--server', 'x y', '']);
        expect(JSON.parse(out)).to.deep.equal(['-q', '--json', '--server', 'x y', '']);
      }
    });

    it('determines the exit code, also when a signal ends it', async () => {
      expect((await inside(['sh', '-c', 'exit 7'])).exitCode).to.equal(7);
      expect((await inside(['sh', '-c', 'kill -KILL $$'])).exitCode).to.equal(137);
      expect((await tokens()).map(({ state }) => state)).to.deep.equal(['revoked', 'revoked']);
    });

    for (const [what, file, exitCode] of [
      ['does not exist', 'no-such-command-anywhere', 127],
      ['may not be executed', '/etc/passwd', 126],
    ] as const) {
      it(`that ${what} is exit ${exitCode}, and the token is revoked`, async () => {
        const failed = await inside(['-q', '--', file, 'an argument']);
        expect(failed.exitCode).to.equal(exitCode);
        expect(failed.err).to.contain(`llmp: cannot run ${file}\n`);
        expect((await onlyToken()).state).to.equal('revoked');
      });
    }
  });

  describe('the token', () => {
    it('is for an hour and named after the command by default', async () => {
      await inside(['-q', '--', 'true']);
      await inside(['-q', '--duration', '5m', '--name', 'nightly', '--', 'true']);
      const lives = (await tokens()).map(({ name, expires_at: end, created_at: start }) => ({
        name,
        minutes: (Date.parse(end) - Date.parse(start)) / 60_000,
      }));
      expect(lives).to.have.deep.members([
        { name: 'true', minutes: 60 },
        { name: 'nightly', minutes: 5 },
      ]);
    });

    it('is for the project of --project-id, then of LLMP_PROJECT_ID; without either, several projects exit with 2', async () => {
      const { id, name } = await daemon.createProject();
      await inside(['-q', '--project-id', name, '--', 'true']);
      await inside(['-q', '--', 'true'], { LLMP_PROJECT_ID: id.slice(0, 8) });
      expect((await tokens()).map(({ project_id }) => project_id)).to.deep.equal([id, id]);
      const { exitCode, out } = await inside(['--', 'echo', 'started']);
      expect({ exitCode, out }).to.deep.equal({ exitCode: 2, out: '' });
    });

    it('has a valid name for any command', async () => {
      for (const file of [`/nowhere/\u001b[2J${'x'.repeat(200)}`, '/nowhere/ ', '\u202e']) {
        expect((await inside(['-q', '--', file])).exitCode).to.equal(127);
      }
      const names = (await tokens()).map(({ name }) => name);
      expect(names).to.have.members([`\\x1b[2J${'x'.repeat(93)}`, 'run', '\\u202e']);
    });

    it('of a protected context needs one confirmation, and none for its revocation', async () => {
      const config = { LLMP_CONFIG: join(temporaryFolder(), 'config.toml') };
      await llmp(`context add prod --server ${daemon.url} --protected`, { env: config });
      const inContext = { ...config, MANAGEMENT_TOKEN };
      const unconfirmed = await llmp('run -c prod -- true', { env: inContext });
      expect(unconfirmed.exitCode).to.equal(2);
      expect(await tokens()).to.deep.equal([]);
      const confirmed = await llmp('run -c prod --yes -- true', { env: inContext });
      expect(confirmed.exitCode).to.equal(0);
      expect((await onlyToken()).state).to.equal('revoked');
    });

    for (const stream of ['stdout', 'stderr'] as const) {
      it(`is revoked when the reader of ${stream} is gone, and the command continues`, async () => {
        const child = run(['-v', '--', NODE, '-e', `console.log('ready'); setTimeout(() => process.exit(4), 100);`]);
        await printed(child);
        child[stream].destroy();
        const [exitCode] = (await once(child, 'exit')) as [number];
        expect((await onlyToken()).state).to.equal('revoked');
        expect(exitCode).to.equal(4);
      });
    }

    it('is revoked if stderr is never read', async () => {
      const child = run(['-v', '--', 'sh', '-c', 'exit 4']);
      child.stderr.destroy();
      const [exitCode] = (await once(child, 'exit')) as [number];
      expect((await onlyToken()).state).to.equal('revoked');
      expect(exitCode).to.equal(4);
    });
  });

  describe('a signal', () => {
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'] as const) {
      it(`${signal} is forwarded to the command, whose exit code is returned, and the token is revoked`, async () => {
        const child = run(['-q', '--', NODE, '-e', HEARS]);
        expect(await printed(child)).to.equal('ready');
        child.kill(signal);
        child.kill(signal); // npm sends the ^C of the terminal once more.
        const { exitCode, out, err } = await ended(child);
        expect(out).to.match(new RegExp(`^(${signal}\n)+$`));
        expect({ exitCode, err }).to.deep.equal({ exitCode: 3, err: '' });
        expect((await onlyToken()).state).to.equal('revoked');
      });
    }

    it('that ends the command determines the exit code', async () => {
      const child = run(['-q', '--', 'sh', '-c', 'echo ready; exec sleep 60']);
      await printed(child);
      child.kill('SIGTERM');
      expect((await ended(child)).exitCode).to.equal(143);
      expect((await onlyToken()).state).to.equal('revoked');
    });

    it('^C at a terminal reaches the command once, and the token is revoked', async function () {
      if (spawnSync('script', ['--version']).status !== 0) {
        if (process.env.CI) throw new Error('script (bsdutils) is missing');
        this.skip();
      }
      const folder = temporaryFolder();
      const program = join(folder, 'hears.cjs');
      writeFileSync(program, HEARS);
      const line = `exec '${NODE}' -- '${MAIN}' run -q -- '${NODE}' '${program}'`;
      const terminal = spawn('script', ['-qefc', line, '/dev/null'], { env: { PATH: process.env.PATH, ...env } });
      let out = '';
      terminal.stdout.on('data', (piece: Buffer) => {
        out += piece.toString();
        if (out.includes('ready') && !out.includes('^C')) terminal.stdin.write('\x03');
      });
      const [exitCode] = (await once(terminal, 'close')) as [number];
      expect(out.match(/SIGINT/g)).to.have.length(1);
      expect(exitCode).to.equal(3);
      expect((await onlyToken()).state).to.equal('revoked');
    });
  });
});

describe('llmp run, with a slow or unreachable daemon', () => {
  const ISSUED: WireTokenCreated = {
    ...aWireToken({ expires_at: '2030-01-01T12:00:00.000Z', request_count: 3, cache_hit_count: 1 }),
    token: `sk-wt-${'a'.repeat(49)}`,
  };
  let daemon: StandIn;
  let env: NodeJS.ProcessEnv;
  /** The responses to the second and further revocation requests. */
  let revocations: StandIn['answer'][];
  /** Resolves with the response to a request for a token; by default the response is immediate. */
  let held: Promise<ServerResponse>;
  let isHeld: boolean;

  beforeEach(async () => {
    daemon = await startStandIn();
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, LLMP_PROJECT_ID: '77ab10f3-2222-4222-8222-222222222222' };
    revocations = [];
    isHeld = false;
    held = new Promise((resolve) => {
      daemon.answer = (req, res) => {
        if (req.method === 'PATCH') {
          (
            revocations.shift() ??
            ((_, it) => {
              answerJson(it, 200, ISSUED);
            })
          )(req, res);
        } else if (req.method === 'GET') answerJson(res, 200, { upstream_base_url: null, upstream_auth: 'bearer' });
        else if (isHeld) resolve(res);
        else answerJson(res, 201, ISSUED);
      };
    });
  });
  afterEach(() => daemon.stop());

  /** After the question what its ceilings are. */
  const asked = () => {
    const [first, ...others] = daemon.asked.map(({ method, url }) => `${method} ${url}`);
    expect(first).to.equal('GET /manage/self');
    return others;
  };
  const REVOCATION = `PATCH /manage/tokens/${ISSUED.id}`;

  it('revokes the token that is issued after the signal, and does not start the command', async () => {
    isHeld = true;
    const child = start(['run', '-q', '--for', 'openai', '--', 'echo', 'started'], env);
    const answer = await held;
    child.kill('SIGTERM');
    child.kill('SIGINT');
    await new Promise((resolve) => setTimeout(resolve, 200)); // Nothing tells when a signal has been heard.
    answerJson(answer, 201, ISSUED);
    const { exitCode, out, err } = await ended(child);
    expect({ out, err }).to.deep.equal({ out: '', err: '' });
    expect(exitCode).to.be.oneOf([130, 143]);
    expect(asked()).to.deep.equal(['POST /manage/tokens', REVOCATION]);
  });

  it('does not wait long for a token after a signal', async () => {
    isHeld = true;
    const child = start(['run', '--for', 'openai', '--', 'echo', 'started'], env);
    await held;
    child.kill('SIGINT');
    expect(await ended(child)).to.include({ exitCode: 130, out: '', err: '' });
  });

  const inProcess = () =>
    llmp(['run', '--for', 'openai', '--', NODE, '-e', 'process.exit(5)'], { env, pause: () => Promise.resolve() });

  it('retries the revocation if the daemon was unreachable', async () => {
    revocations = [(_, res) => res.destroy(), refuse(503, 'unavailable', 'later')];
    const { exitCode, err } = await inProcess();
    expect(exitCode).to.equal(5);
    expect(err).to.equal('Used 3 requests, plus 1 cache hit. Revoked 3fa91c2e.\n');
    expect(asked()).to.deep.equal(['POST /manage/tokens', REVOCATION, REVOCATION, REVOCATION]);
  });

  it('reports the remaining token, its expiry and advice if the daemon stays unreachable', async () => {
    revocations = Array.from({ length: 20 }, () => (_, res) => res.destroy());
    const { exitCode, err } = await inProcess();
    expect(exitCode).to.equal(5);
    expect(err.trimEnd().split('\n')).to.deep.equal([
      'llmp: could not revoke token 3fa91c2e; it can be used until 2030-01-01T12:00:00.000Z',
      `  cannot reach the daemon at ${daemon.url}: ECONNRESET`,
      `  Revoke it: llmp token revoke ${ISSUED.id}`,
    ]);
    expect(asked()).to.deep.equal(['POST /manage/tokens', ...Array<string>(6).fill(REVOCATION)]);
  });

  it('does not retry a refused revocation, and succeeds if the token no longer exists', async () => {
    revocations = [refuse(401, 'management_token_refused', 'no')];
    expect((await inProcess()).err)
      .to.contain('refused the management token')
      .and.to.contain(ISSUED.id);
    revocations = [refuse(404, 'not_found', 'token not found')];
    expect(await inProcess()).to.deep.equal({ exitCode: 5, out: '', err: '' });
  });

  it('reports a remaining token even with -q', async () => {
    revocations = [refuse(401, 'management_token_refused', 'no')];
    const { err } = await llmp(['run', '-q', '--', NODE, '-e', ''], { env });
    expect(err).to.contain('could not revoke');
  });

  describe('the base URL', () => {
    // The command prints its base URL, which with a unix socket is not visible otherwise.
    const SHOWS = ['--', NODE, '-p', 'process.env.OPENAI_BASE_URL'];

    it('is the given one if /v1 is elsewhere', async () => {
      const { out } = await ended(start(['run', '--base-url', 'https://llm.example/v1', ...SHOWS], env));
      expect(out).to.equal('https://llm.example/v1\n');
    });

    it('must be given with a unix socket, before a token is issued', async () => {
      const socket = await startStandIn(join(temporaryFolder(), 'llmp.sock'));
      socket.answer = daemon.answer;
      const overSocket = { ...env, LLMP_SERVER: socket.url };
      const { exitCode, err } = await llmp(['run', ...SHOWS], { env: overSocket });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('--base-url');
      expect(socket.asked).to.deep.equal([]);
      const url = 'http://127.0.0.1:8080/v1';
      const { out } = await ended(start(['run', '--base-url', url, ...SHOWS], overSocket));
      await socket.stop();
      expect(out).to.equal(`${url}\n`);
    });

    for (const url of ['llm.example/v1', 'ftp://llm.example', 'https://me:secret@llm.example/v1']) {
      it(`is refused when it is ${url}`, async () => {
        const { exitCode, err } = await llmp(['run', '--base-url', url, ...SHOWS], { env });
        expect(exitCode).to.equal(2);
        expect(err).to.contain('--base-url must be http').and.not.to.contain('secret');
        expect(daemon.asked).to.deep.equal([]);
      });
    }
  });
});
