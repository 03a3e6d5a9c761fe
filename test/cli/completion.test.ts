import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { aTop, aTopRow } from '../support/factories.js';
import { GLOBAL_OPTIONS } from '../../cli/globals.js';
import { wholeTree } from '../../cli/commands.js';
import { perTest } from '../support/per-test.js';
import { type Captured, llmp, type Situation } from './captured.js';
import { answerJson, refuse, responds, type StandIn, startStandIn } from './stand-in.js';

const WEB = { id: '77ab10f3-0000-4000-8000-000000000001', name: 'web', is_active: true };
const OFF = { id: '77ab10f3-0000-4000-8000-000000000002', name: 'staging.eu-1', is_active: false };
const HOSTILE = [
  '$(touch pwned)',
  '`touch pwned`',
  'a; touch pwned',
  "it's",
  'new\nline\ttab',
  '-rf',
  '\x1b[31mred',
  '%F{red}%',
  '~root',
  '\\x',
].map((name, at) => ({ id: `99ab10f3-0000-4000-8000-00000000000${at}`, name, is_active: true }));
const TOKENS = [
  { id: '3fa91c2e-0000-4000-8000-000000000001', name: 'ci-deploy', state: 'active' },
  { id: '3fb91c2e-0000-4000-8000-000000000002', name: null, state: 'revoked' },
  { id: '$(touch pwned)', name: 'hostile daemon', state: 'active' },
];

/** The candidates for the last of `words`. */
async function offered(words: readonly string[], situation: Situation = {}): Promise<string[]> {
  const { exitCode, out, err } = await complete(words, situation);
  expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
  const [kind, ...lines] = out.trimEnd().split('\n');
  return kind === 'files' ? ['FILES'] : lines.map((line) => line.split('\t')[0]!);
}

const complete = (words: readonly string[], situation: Situation): Promise<Captured> =>
  llmp(['__complete', '--', ...words], { pause: untilAborted, ...situation });

/** Removes the time limit, so that a busy machine does not affect the result. */
const untilAborted = (_ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

describe('completion offers', () => {
  for (const [line, words] of [
    ['tok', ['token']],
    ['serv', []],
    ['token re', ['revoke', 'reactivate']],
    ['top ', ['token', 'project', 'model', 'model_total', '5m', '1h', '24h', 'project:', 'model:']],
    ['top m', ['model', 'model_total', 'model:']],
    ['top model ', ['5m', '1h', '24h', 'project:', 'model:']],
    ['top --by token 24h ', ['project:', 'model:']],
    ['top model web ', ['project:', 'model:']],
    ['manage pro', ['project']],
    ['manage token wh', ['whois']],
    ['token list --st', ['--state']],
    ['token list --state ', ['active', 'expired', 'revoked', 'rate_limited', 'project_inactive']],
    ['token list --state ex', ['expired']],
    ['token list --state=ex', ['--state=expired']],
    ['-o j', ['json', 'jsonl']],
    ['token -o csv li', ['list']],
    ['token list -o csv --sort -cr', ['-created_at']],
    ['token list --management-token-f', ['--management-token-file']],
    ['cache purge --method ', ['GET', 'POST']],
    ['usage --by mo', ['model']],
    ['usage --by token,', ['token,project', 'token,model', 'token,hour', 'token,day']],
    ['serve --ch', ['--check']],
    ['daemon --env-file ', ['FILES']],
    ['daemon --env-file=', ['FILES']],
    ['audit verify ', ['FILES']],
    ['run -- ', ['FILES']],
    ['run -- npm --re', ['FILES']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['completion bash ', []],
    ['help exi', ['exit-codes']],
    ['help token gen', ['generate']],
    ['man tok', ['token']],
    ['nonsense ', []],
    ['token nonsense ', []],
    ['token list --name', []],
    ['--help', ['--help']],
    ['__com', []],
  ] as const) {
    it(`for \`${line}\`: ${words.join(' ') || 'nothing'}`, async () => {
      expect(await offered(line.split(' '))).to.have.members(words);
    });
  }

  it('all commands with their summaries', async () => {
    const { out } = await complete([''], {});
    expect(out).to.contain('\nstatus\t').and.to.contain('\ntoken\tissue, list');
    expect(out).not.to.contain('__complete');
  });

  it('IDs and names wherever one is accepted', async () => {
    const what = {
      'project-id': 'project',
      'token-id': 'token',
      batch: 'batch',
      like: 'token',
      context: 'context',
      model: 'model',
      'allow-model': 'model',
      query: 'query of tokens',
    };
    for (const { path, command } of (await wholeTree()).commands) {
      for (const option of [...Object.values(command.options), ...Object.values(GLOBAL_OPTIONS)]) {
        const [, name = ''] = /--([\w-]+) </.exec(option.flags) ?? [];
        const expected = (what as Record<string, string | undefined>)[name];
        expect(option.completes, `${path.join(' ')} ${option.flags}`).to.equal(expected);
      }
    }
  });

  it('no option twice', async () => {
    expect(await offered(['token', 'list', '--state', 'active', '--s'])).to.have.members([
      '--search',
      '--sort',
      '--server',
    ]);
  });

  it('contexts, without a request', async () => {
    const file = join(temporaryFolder(), 'config.toml');
    writeFileSync(
      file,
      '[contexts.prod]\nserver = "https://llmp.example"\n[contexts.dev]\nserver = "unix:/run/llmp"\n',
      {
        mode: 0o600,
      },
    );
    const env = { LLMP_CONFIG: file };
    for (const words of [
      ['-c', ''],
      ['context', 'use', ''],
      ['token', 'list', '--context', ''],
    ]) {
      expect(await offered(words, { env })).to.have.members(['prod', 'dev']);
    }
    expect(await offered(['--context=p'], { env })).to.deep.equal(['--context=prod']);
  });

  describe('from the daemon', () => {
    const daemon = perTest(() => startStandIn());
    let env: NodeJS.ProcessEnv;

    beforeEach(() => {
      env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
      daemon.answer = (req, res) => {
        answerJson(res, 200, req.url?.startsWith('/manage/tokens') ? TOKENS : [WEB, OFF, ...HOSTILE]);
      };
    });

    it('ids of tokens, with their names', async () => {
      const { out } = await complete(['token', 'revoke', '3f'], { env });
      expect(out).to.equal(`words\n${TOKENS[0]!.id}\tci-deploy, active\n${TOKENS[1]!.id}\trevoked\n`);
      expect(daemon.asked.map(({ url }) => url)).to.deep.equal(['/manage/tokens?limit=200&sort=live&q=3f']);
    });

    it('names of tokens that are unique, otherwise IDs', async () => {
      const { out } = await complete(['token', 'get', ''], { env });
      expect(out).to.equal(`words\nci-deploy\t${TOKENS[0]!.id}, active\n${TOKENS[1]!.id}\trevoked\n`);
      expect(await offered(['audit', 'list', '--token-id', 'ci'], { env })).to.deep.equal(['ci-deploy']);
      expect(await offered(['token', 'generate', '--like', 'ci'], { env })).to.deep.equal(['ci-deploy']);
      const twin = { ...TOKENS[0]!, id: '3fc91c2e-0000-4000-8000-000000000003' };
      daemon.answer = responds([TOKENS[0], twin]);
      expect(await offered(['token', 'get', ''], { env })).to.deep.equal([TOKENS[0]!.id, twin.id]);
    });

    it('only IDs of tokens if there are more of them than it asks for', async () => {
      daemon.answer = responds(TOKENS, 200, { link: '</manage/tokens?cursor=more>; rel="next"' });
      expect(await offered(['token', 'get', ''], { env })).to.deep.equal([TOKENS[0]!.id, TOKENS[1]!.id]);
    });

    it('no name or ID twice', async () => {
      expect(await offered(['token', 'get', 'ci-deploy', ''], { env })).to.deep.equal([TOKENS[1]!.id]);
    });

    it('keys and values of queries, and asks the daemon only for projects', async () => {
      expect(await offered(['token', 'list', ''])).to.include.members(['state:', 'project:', 'expires:', 'used:']);
      expect(await offered(['token', 'list', 'state:re'])).to.deep.equal(['state:revoked']);
      expect(await offered(['token', 'list', 'ci', 'state:active,ex'])).to.deep.equal(['state:active,expired']);
      // < and > are special to a shell.
      expect(await offered(['token', 'list', 'expires:'])).to.be.empty;
      expect(await offered(['audit', 'list', 'actor:c'])).to.deep.equal(['actor:cli']);
      expect(await offered(['project', 'list', 'state:'])).to.deep.equal(['state:active', 'state:inactive']);
      expect(daemon.asked).to.be.empty;
      expect(await offered(['token', 'list', 'project:s'], { env })).to.deep.equal(['project:staging.eu-1']);
      expect(daemon.asked).to.have.length(1);
    });

    it('names of models that were used in the last day, once each', async () => {
      const rows = ['gpt-4o', 'gpt-4o', 'meta/llama-3', '$(touch pwned)', null].map((model) => aTopRow({ model }));
      daemon.answer = responds(aTop({ by: 'model', window: '24h', rows }));
      expect(await offered(['token', 'list', '--model', ''], { env })).to.deep.equal(['gpt-4o', 'meta/llama-3']);
      expect(daemon.asked.map(({ url }) => url)).to.deep.equal([
        '/manage/top?by=model&window=24h&sort=requests&limit=200',
      ]);
      expect(await offered(['events', 'tail', '--model=me'], { env })).to.deep.equal(['--model=meta/llama-3']);
      expect(await offered(['token', 'list', 'model:g'], { env })).to.deep.equal(['model:gpt-4o']);
      const allowed = await offered(['token', 'update', 'ci', '--allow-model', 'gpt-4o,'], { env });
      expect(allowed).to.deep.equal(['gpt-4o,meta/llama-3']);
      expect(await offered(['top', 'model', 'model:'], { env })).to.deep.equal(['model:gpt-4o', 'model:meta/llama-3']);
      expect(await offered(['token', 'revoke', '--query', 'model:m'], { env })).to.deep.equal(['model:meta/llama-3']);
      daemon.answer = refuse(503, 'unavailable', 'unavailable');
      expect(await offered(['token', 'list', '--model', ''], { env })).to.deep.equal([]);
    });

    it('project names, and IDs if the user types an ID', async () => {
      expect(await offered(['project', 'get', 'w'], { env })).to.deep.equal(['web']);
      expect(await offered(['token', 'list', '--project-id', 's'], { env })).to.deep.equal(['staging.eu-1']);
      expect(await offered(['token', 'list', '--project-id=we'], { env })).to.deep.equal(['--project-id=web']);
      expect(await offered(['project', 'get', '77ab'], { env })).to.have.members([WEB.id, OFF.id]);
    });

    it('only IDs for names that are special to a shell, with the escaped name on one line', async () => {
      const { out } = await complete(['project', 'get', ''], { env });
      const lines = out.trimEnd().split('\n').slice(1);
      expect(lines).to.have.length(2 + HOSTILE.length);
      for (const line of lines) expect(line).to.match(/^[\w.-]+\t[^\p{Cc}]+$/u);
      for (const { id } of HOSTILE) expect(out).to.contain(`\n${id}\t`);
      expect(out).to.contain('\tnew\\x0aline\\x09tab\n').and.to.contain('\\x1b[31mred');
    });

    it('with the server, the management token file and the context of the command line', async () => {
      const file = join(temporaryFolder(), 'token');
      writeFileSync(file, MANAGEMENT_TOKEN);
      const words = ['--server', daemon.url, 'project', '--management-token-file', file, 'get', 'w'];
      expect(await offered(words)).to.deep.equal(['web']);
      expect(
        await offered(['-c', 'dev', ...words.slice(2)], { env: contexts(`server = "${daemon.url}"`) }),
      ).to.deep.equal(['web']);
    });

    it('nothing without credentials, and no prompt, even on a terminal', async () => {
      for (const terminal of [undefined, 80]) {
        const situation = { env: { LLMP_SERVER: daemon.url }, ...(terminal !== undefined && { terminal }) };
        expect(await offered(['token', 'revoke', ''], situation)).to.deep.equal([]);
      }
      expect(daemon.asked).to.be.empty;
    });

    it('nothing where a command would have to be run for the management token', async () => {
      const ran = join(temporaryFolder(), 'ran');
      const context = `server = "${daemon.url}"\ntoken_command = "touch ${ran}; echo token"`;
      expect(await offered(['-c', 'dev', 'token', 'revoke', ''], { env: contexts(context) })).to.deep.equal([]);
      expect(existsSync(ran)).to.be.false;
      expect(daemon.asked).to.be.empty;
    });

    it('nothing where standard input would have to be read for the management token', async () => {
      const words = ['--management-token-file', '-', 'token', 'revoke', ''];
      expect(await offered(words, { env: { LLMP_SERVER: daemon.url }, stdin: MANAGEMENT_TOKEN })).to.deep.equal([]);
    });

    it('nothing over clear text to another machine', async () => {
      const far = { LLMP_SERVER: 'http://llmp.example:8080', MANAGEMENT_TOKEN };
      expect(await offered(['token', 'revoke', ''], { env: far })).to.deep.equal([]);
    });

    it('nothing if it refuses, fails, sends something else, or is unreachable', async () => {
      for (const answer of [
        refuse(401, 'unauthorized', 'no'),
        refuse(503, 'unavailable', 'no'),
        responds({ not: 'a list' }) satisfies StandIn['answer'],
      ]) {
        daemon.answer = answer;
        expect(await offered(['token', 'revoke', ''], { env })).to.deep.equal([]);
      }
      await daemon.stop();
      expect(await offered(['token', 'revoke', ''], { env })).to.deep.equal([]);
    });

    it('nothing from a slow daemon, but options and words', async () => {
      daemon.answer = () => undefined;
      const pause = () => Promise.resolve();
      expect(await offered(['token', 'revoke', ''], { env, pause })).to.deep.equal([]);
      expect(await offered(['token', 'revoke', '--dr'], { env, pause })).to.deep.equal(['--dry-run']);
    });
  });

  function contexts(dev: string): NodeJS.ProcessEnv {
    const file = join(temporaryFolder(), 'config.toml');
    writeFileSync(file, `[contexts.dev]\n${dev}\n`, { mode: 0o600 });
    return { LLMP_CONFIG: file, MANAGEMENT_TOKEN: dev.includes('token_command') ? undefined : MANAGEMENT_TOKEN };
  }
});

describe('llmp completion', () => {
  it('prints a valid script for each shell', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { exitCode, out, err } = await llmp(['completion', shell]);
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      expect(out).to.contain('llmp __complete --');
      const script = join(temporaryFolder(), 'script');
      writeFileSync(script, out);
      const { status, stderr } = spawnSync(shell, ['-n', script], { encoding: 'utf8' });
      if (status !== null) expect({ shell, status, stderr }).to.deep.equal({ shell, status: 0, stderr: '' });
    }
  });

  it('exits 2 for another shell, and without one', async () => {
    expect((await llmp('completion bahs')).err).to.contain('Did you mean bash?');
    expect((await llmp('completion')).exitCode).to.equal(2);
  });

  it('is described in docs/install.md as in its examples', async () => {
    const page = readFileSync(new URL('../../../docs/install.md', import.meta.url), 'utf8');
    expect(page).to.contain('source <(llmp completion bash)');
    expect((await llmp('completion bash')).out).to.contain('source <(llmp completion bash)');
  });
});
