/** `llmp run` and `llmp connect` with agents: programs of their names, which print what they are started with. */
import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { PROFILES } from '../../cli/profiles.js';
import { PROVIDER_KEYS } from '../../cli/sdk-variables.js';
import { type Dialect, DIALECTS, PROVIDERS } from '../../daemon/api/providers.js';
import type { WireProject } from '../../daemon/api/contract.js';
import type { TokenSelf } from '../../daemon/api/token-self.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { type Provider, startProvider } from '../support/provider.js';
import { llmp } from './captured.js';
import { ended, MAIN, start } from './processes.js';
import { startStandIn } from './stand-in.js';

/** What a program of the test prints, with this in place of the token. */
const TOKEN = 'the-token';

interface Started {
  args: string[];
  env: NodeJS.ProcessEnv;
  /** Contents of the files that its arguments and variables name, and their modes. */
  files: Record<string, string>;
  modes: Record<string, string>;
  self: TokenSelf;
}

const PROGRAM = `#!${process.execPath}
const { spawnSync } = require('node:child_process');
const { readFileSync, statSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const args = process.argv.slice(2);
const files = {}, modes = {};
for (const text of [...args, ...Object.values(process.env)]) {
  if (!/llmp-run-\\w+/.test(text) || !text.startsWith('/')) continue;
  const folder = /^.*?llmp-run-\\w+/.exec(text)[0];
  modes['.'] = (statSync(folder).mode & 0o777).toString(8);
  for (const name of readdirSync(folder, { recursive: true })) {
    const found = statSync(join(folder, name));
    const mode = (found.mode & 0o777).toString(8);
    if (found.isFile()) [files[name], modes[name]] = [readFileSync(join(folder, name), 'utf8'), mode];
    else modes['.'] += ' ' + mode;
  }
}
const self = spawnSync(process.execPath, [process.env.TEST_LLMP, 'self', '-o', 'json']);
const shown = { args, env: process.env, files, modes, self: JSON.parse(self.stdout.toString() || 'null') };
console.log(JSON.stringify(shown).replace(/sk-wt-\\w+/g, '${TOKEN}'));
if (args.includes('wait')) setInterval(() => undefined, 1000);
`;

const TARGETS: Readonly<Record<Dialect, { baseUrl: string | null; auth: string }>> = {
  openai: PROVIDERS.groq,
  anthropic: PROVIDERS.anthropic,
  gemini: PROVIDERS.gemini,
  azure: { baseUrl: 'https://mine.openai.azure.com', auth: 'api-key' },
};

describe('agents', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let env: NodeJS.ProcessEnv;
  let bin: string;
  let tmp: string;
  const projects: Record<string, string> = {};
  const tmpOfTests = process.env.TMPDIR;

  before(async () => {
    provider = await startProvider();
    daemon = await startDaemon({ upstream: provider.url });
    bin = temporaryFolder();
    tmp = join(bin, 'tmp');
    mkdirSync(tmp);
    for (const name of [...Object.keys(PROFILES), 'python3.12', 'my-agent']) {
      writeFileSync(join(bin, name), PROGRAM);
      chmodSync(join(bin, name), 0o755);
    }
    for (const [name, { baseUrl: upstream_base_url, auth: upstream_auth }] of Object.entries(TARGETS)) {
      const fields = { name, api_key: canary('upstream'), upstream_base_url, upstream_auth };
      const created = await daemon.manage('POST', '/manage/projects', fields);
      expect(created.status).to.equal(201);
      projects[name] = (created.body as WireProject).id;
    }
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, TMPDIR: tmp, TEST_LLMP: MAIN };
    process.env.TMPDIR = tmp; // Of commands in this process.
  });
  after(async () => {
    if (tmpOfTests === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = tmpOfTests;
    await daemon.stop();
    await provider.stop();
  });
  afterEach(() => {
    expect(
      readdirSync(tmp).filter((name) => name.startsWith('llmp-run-')),
      'folders that are left',
    ).to.deep.equal([]);
  });

  const run = (dialect: Dialect, args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    llmp(['run', '--project-id', dialect, ...args], {
      env: { PATH: process.env.PATH, ...env, ...more },
      interrupted: new Promise(() => undefined),
    });

  async function started(dialect: Dialect, args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Started> {
    const { out, err, exitCode } = await run(dialect, args, more);
    expect(exitCode, err).to.equal(0);
    return JSON.parse(out) as Started;
  }

  for (const [name, { dialects, needsModel }] of Object.entries(PROFILES)) {
    for (const dialect of dialects) {
      it(`${name} is pointed at the daemon with ${dialect}, and llmp self works in it`, async () => {
        const options = needsModel ? ['--model', 'a-model'] : [];
        const {
          args,
          env: inner,
          files,
          modes,
          self,
        } = await started(
          dialect,
          [...options, '--', join(bin, name), 'a word', '--flag'],
          Object.fromEntries(PROVIDER_KEYS.map((key) => [key, canary('upstream')])),
        );
        expect(args.slice(-2)).to.deep.equal(['a word', '--flag']);
        expect(self).to.include({ dialect, name, state: 'active' });
        expect(args.join(' '), 'a secret in the arguments').not.to.contain(TOKEN);
        const everything = JSON.stringify([args, inner, files]);
        expect(everything, 'the address').to.contain(daemon.url);
        expect(inner, 'keys of others').not.to.satisfy((it: NodeJS.ProcessEnv) =>
          Object.keys(it).some((key) => PROVIDER_KEYS.includes(key) && !it[key]?.includes(TOKEN)),
        );
        const { '.': folders = '700', ...modesOfFiles } = modes;
        expect(folders).to.match(/^700( 700)*$/);
        expect(Object.values(modesOfFiles)).to.satisfy((all: string[]) => all.every((mode) => mode === '600'));
      });
    }
    it(`${name} is not started with a project for another API`, async () => {
      for (const dialect of DIALECTS.filter((it) => !dialects.includes(it))) {
        const command = ['run', '--project-id', dialect, '--model', 'm', '--', join(bin, name)];
        const { exitCode, err } = await llmp(command, { env });
        expect(exitCode).to.equal(2);
        expect(err).to.contain(`${name} cannot use a project for ${dialect}`).and.to.contain(dialects.join(', '));
      }
    });
  }

  it('Codex gets a provider of its own, which uses no stored login', async () => {
    const { args, env: inner } = await started('openai', ['--', join(bin, 'codex'), 'exec', 'hi']);
    expect(args).to.deep.equal([
      ...['-c', 'model_provider="llmp"', '-c'],
      `model_providers.llmp={name="llmp",base_url="${daemon.url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}`,
      ...['exec', 'hi'],
    ]);
    expect(inner.OPENAI_API_KEY).to.equal(TOKEN);
    expect(inner).not.to.have.property('CODEX_HOME');
  });

  it('Claude Code gets a bearer token, and settings that take precedence over those of the person', async () => {
    const { args, env: inner, files } = await started('anthropic', ['--', join(bin, 'claude')]);
    expect(inner).not.to.have.property('ANTHROPIC_API_KEY');
    expect(args[0]).to.equal('--settings');
    expect(JSON.parse(files['settings.json'] ?? '')).to.deep.equal({
      env: {
        ANTHROPIC_BASE_URL: daemon.url,
        ANTHROPIC_AUTH_TOKEN: inner.ANTHROPIC_AUTH_TOKEN,
        ANTHROPIC_API_KEY: '',
      },
      apiKeyHelper: '',
    });
  });

  it('programs that take the version in the base URL get it, and no others', async () => {
    const opencode = await started('anthropic', ['--', join(bin, 'opencode')]);
    expect(opencode.env.ANTHROPIC_BASE_URL).to.equal(daemon.url);
    expect(opencode.env.OPENCODE_CONFIG_CONTENT).to.contain(`"baseURL":"${daemon.url}/v1"`);
    const aider = await started('gemini', ['--', join(bin, 'aider')]);
    expect(aider.env).to.include({ GOOGLE_GEMINI_BASE_URL: daemon.url, GEMINI_API_BASE: `${daemon.url}/v1beta` });
    const promptfoo = await started('gemini', ['--', join(bin, 'promptfoo')]);
    expect(promptfoo.env.GOOGLE_API_BASE_URL).to.equal(daemon.url);
  });

  it('variables for other addresses that a program reads first are removed', async () => {
    const others = { OPENAI_API_HOST: 'elsewhere.test', OPENAI_API_BASE: 'https://elsewhere.test/v1' };
    const { env: inner } = await started('openai', ['--', join(bin, 'promptfoo')], others);
    expect(inner).not.to.have.any.keys(...Object.keys(others));
  });

  it('--as selects the set-up of another name, and versions of Python have that of python', async () => {
    const { args } = await started('openai', ['--as', 'codex', '--', join(bin, 'my-agent')]);
    expect(args[0]).to.equal('-c');
    const python = await started('gemini', ['--', join(bin, 'python3.12')]);
    expect(python.env).to.include({ GEMINI_API_BASE: `${daemon.url}/v1beta` });
  });

  it('an unknown command gets the variables of the SDK, and they are named', async () => {
    const { err } = await run('anthropic', ['--', join(bin, 'my-agent')]);
    expect(err).to.match(/^Set ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL for my-agent\.\nUsed 0 requests/);
  });

  it('a command whose configuration names a model needs --model; an agent takes one SDK', async () => {
    const { exitCode, err } = await run('openai', ['--', join(bin, 'cn')]);
    expect({ exitCode, err: err.split('\n')[0] }).to.deep.equal({ exitCode: 2, err: 'llmp: cn needs a model' });
    const both = await run('openai', ['--for', 'openai,anthropic', '--', join(bin, 'opencode')]);
    expect(both.exitCode).to.equal(2);
    expect(both.err).to.contain('opencode is set up for one SDK');
  });

  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) {
    it(`the folder is removed after ${signal}`, async () => {
      const child = start(['run', '-q', '--project-id', 'gemini', '--', join(bin, 'gemini'), 'wait'], env);
      const [piece] = (await once(child.stdout, 'data')) as [Buffer];
      expect(readdirSync(tmp)).to.have.lengthOf(1);
      expect(piece.toString()).to.contain('settings.json');
      child.kill(signal);
      await ended(child);
    });
  }

  it('a proxy is not asked for a daemon on this machine', async () => {
    const proxied = { HTTPS_PROXY: 'http://proxy.example:3128', no_proxy: 'a.example' };
    const { env: inner } = await started('openai', ['--', join(bin, 'codex')], proxied);
    expect(inner).to.include({ NO_PROXY: 'a.example,127.0.0.1', no_proxy: 'a.example,127.0.0.1' });
    expect((await started('openai', ['--', join(bin, 'codex')])).env).not.to.have.property('NO_PROXY');
  });

  it('only commands that need a folder get one', async () => {
    const nowhere = { ...env, TMPDIR: join(bin, 'missing') };
    const codex = ['run', '-q', '--project-id', 'openai', '--', join(bin, 'codex')];
    expect((await ended(start(codex, nowhere))).exitCode).to.equal(0);
    const claude = ['run', '--project-id', 'anthropic', '--', join(bin, 'claude')];
    const { exitCode, out, err } = await ended(start(claude, nowhere));
    expect({ exitCode, out }).to.deep.equal({ exitCode: 126, out: '' });
    expect(err).to.contain('cannot create a folder in').and.to.contain('Revoked');
  });

  it('-n shows the set-up and neither issues a token nor starts the command', async () => {
    const before = ((await daemon.manage('GET', '/manage/tokens')).body as unknown[]).length;
    const situation = { env: { ...env, GROQ_API_KEY: canary('upstream') } };
    const claude = ['run', '--project-id', 'anthropic', '-n'];
    const { out, exitCode } = await llmp([...claude, '--', 'claude', 'two words'], situation);
    expect(exitCode).to.equal(0);
    expect(out).to.contain('# FOLDER/settings.json\n').and.to.contain('unset GROQ_API_KEY\n');
    expect(out).to.contain(`export ANTHROPIC_BASE_URL=${daemon.url}\n`);
    expect(out.trimEnd().split('\n').at(-1)).to.equal("claude --settings FOLDER/settings.json 'two words'");
    const { out: data } = await llmp([...claude, '-o', 'json', '--', 'claude'], situation);
    expect(JSON.parse(data)).to.deep.include({ removed: ['GROQ_API_KEY'] });
    expect(((await daemon.manage('GET', '/manage/tokens')).body as unknown[]).length).to.equal(before);
  });

  describe('llmp connect', () => {
    let tokens: Record<Dialect, { file: string; secret: string }>;

    before(async () => {
      const folder = temporaryFolder();
      tokens = Object.fromEntries(
        await Promise.all(
          DIALECTS.map(async (dialect) => {
            const { token: secret } = await daemon.createToken(projects[dialect] ?? '');
            const file = join(folder, `${dialect}'s token`);
            writeFileSync(file, `${secret}\n`, { mode: 0o600 });
            return [dialect, { file, secret }] as const;
          }),
        ),
      ) as typeof tokens;
    });
    after(() => {
      for (const { file } of Object.values(tokens)) rmSync(file);
    });

    const connect = (name: string, dialect: Dialect, more: readonly string[] = []) =>
      llmp(['connect', name, '--token-file', tokens[dialect].file, ...more], { env: { LLMP_SERVER: daemon.url } });

    for (const [name, { dialects }] of Object.entries(PROFILES)) {
      for (const dialect of dialects) {
        it(`${name}: settings for ${dialect}, which read the token from its file`, async () => {
          const { out, err, exitCode } = await connect(name, dialect, ['--model', 'm']);
          expect(exitCode).to.equal(0);
          expect(err).to.match(/^(?:In [~.\w/]+:\n)?$/);
          expect(out).to.contain(daemon.url).and.to.contain('s token').and.not.to.contain(tokens[dialect].secret);
          const { out: data } = await connect(name, dialect, ['--model', 'm', '--json']);
          const { shell } = JSON.parse(data) as { shell: string[] };
          const shown = spawnSync('sh', ['-ec', [...shell, 'env'].join('\n')], { env: { PATH: process.env.PATH } });
          expect(shown.status, shown.stderr.toString()).to.equal(0);
          if (shell.length > 0) expect(shown.stdout.toString()).to.contain(`=${tokens[dialect].secret}\n`);
        });
      }
    }

    it('prints a single block so that the shell can append it to its file', async () => {
      const { out, err } = await connect('claude', 'anthropic');
      expect(err).to.contain('In ~/.profile:');
      expect(out.trimEnd().split('\n')).to.satisfy((lines: string[]) => lines.every((it) => it.startsWith('export ')));
      expect((await connect('opencode', 'openai')).out).to.satisfy((text: string) => JSON.parse(text) !== null);
    });

    it('refuses a command and a project of different APIs, naming both', async () => {
      const { exitCode, err } = await connect('codex', 'anthropic');
      expect(exitCode).to.equal(2);
      expect(err).to.contain('codex cannot use a project for anthropic').and.to.contain('it speaks openai');
    });

    it('sends nothing but a token, and needs a file', async () => {
      const file = join(temporaryFolder(), 'key');
      const secret = canary('upstream');
      writeFileSync(file, secret);
      const standIn = await startStandIn();
      const other = await llmp(['connect', 'codex', '--token-file', file], { env: { LLMP_SERVER: standIn.url } });
      expect(other.exitCode).to.equal(2);
      expect(other.err).to.contain('there is no token in').and.not.to.contain(secret);
      expect(standIn.asked).to.deep.equal([]);
      await standIn.stop();
      rmSync(file);
      for (const given of [[], ['--token-file', '-'], ['--token-file', join(file, 'missing')]]) {
        expect((await llmp(['connect', 'codex', ...given], { env })).exitCode).to.equal(2);
      }
    });

    it('warns of a file that others can read', async () => {
      chmodSync(tokens.openai.file, 0o644);
      const { exitCode, err } = await connect('codex', 'openai');
      chmodSync(tokens.openai.file, 0o600);
      expect(exitCode).to.equal(0);
      expect(err).to.contain('readable by other users');
    });

    it('does not ask the daemon with --for', async () => {
      const standIn = await startStandIn();
      const args = ['connect', 'codex', '--token-file', tokens.openai.file, '--for', 'openai'];
      const { exitCode } = await llmp(args, { env: { LLMP_SERVER: standIn.url } });
      expect(exitCode).to.equal(0);
      expect(standIn.asked).to.have.lengthOf(0);
      await standIn.stop();
    });
  });
});

describe('keys of providers', () => {
  const lists = readFileSync(new URL('../../../test/cli/provider-keys.txt', import.meta.url), 'utf8').split(/^== /m);
  const namesOf = (title: string): readonly string[] =>
    lists
      .find((list) => list.startsWith(title))
      ?.split('\n')
      .slice(1)
      .filter((line) => !line.startsWith('#'))
      .join(' ')
      .match(/\b[A-Z][A-Z0-9_]+\b/g) ?? [];

  for (const title of ['ai and @ai-sdk', 'litellm', 'opencode']) {
    it(`that ${title} reads are not inherited`, () => {
      const names = namesOf(title);
      expect(names.length).to.be.greaterThan(30);
      const kept = namesOf('kept');
      expect(names.filter((name) => !PROVIDER_KEYS.includes(name) && !kept.includes(name))).to.deep.equal([]);
    });
  }

  it('that the agents read are not inherited', () => {
    expect(PROVIDER_KEYS).to.include.members([
      ...['CODEX_API_KEY', 'DASHSCOPE_API_KEY', 'MOONSHOT_API_KEY', 'ZAI_API_KEY', 'OPENCODE_API_KEY', 'LLM_API_KEY'],
    ]);
    expect(PROVIDER_KEYS).to.have.lengthOf(new Set(PROVIDER_KEYS).size);
  });
});
