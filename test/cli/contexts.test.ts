import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { contextsPath } from '../../cli/connection/contexts.js';
import { canary } from '../support/canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { llmp } from './captured.js';
import { startStandIn } from './stand-in.js';

const ANOTHER_TOKEN = canary('management');

describe('contexts', () => {
  let home: string;
  let env: NodeJS.ProcessEnv;
  const daemon = perTest(() => startStandIn());

  beforeEach(() => {
    home = temporaryFolder();
    env = { HOME: home };
  });

  const path = () => join(home, '.config/llmp/config.toml');
  const credentials = () => daemon.asked.map(({ headers }) => headers.authorization);

  function tokenFile(mode = 0o600, content = `${MANAGEMENT_TOKEN}\n`): string {
    const file = join(home, 'token');
    writeFileSync(file, content);
    chmodSync(file, mode);
    return file;
  }

  const add = (name: string, more = `--token-file ${tokenFile()}`) =>
    llmp(`context add ${name} --server ${daemon.url} ${more}`.trimEnd(), { env });

  function write(content: string, mode = 0o600): void {
    mkdirSync(join(home, '.config/llmp'), { recursive: true });
    writeFileSync(path(), content);
    chmodSync(path(), mode);
  }

  const namesOf = async () => {
    const { out } = await llmp('context list --json', { env });
    return (JSON.parse(out) as { name: string; is_current: boolean }[]).map(({ name, is_current: isCurrent }) =>
      isCurrent ? `${name}*` : name,
    );
  };

  describe('are stored', () => {
    it('in ~/.config/llmp/config.toml, or in XDG_CONFIG_HOME, or in the file LLMP_CONFIG, for their owner only', async () => {
      const xdg = join(home, 'xdg');
      const other = join(home, 'other.toml');
      for (const [more, where] of [
        [{}, path()],
        [{ XDG_CONFIG_HOME: xdg }, join(xdg, 'llmp/config.toml')],
        [{ XDG_CONFIG_HOME: xdg, LLMP_CONFIG: other }, other],
      ] as const) {
        const { exitCode, err } = await llmp(`context add prod --server ${daemon.url}`, { env: { ...env, ...more } });
        expect(exitCode, err).to.equal(0);
        expect(err).to.contain(`Added prod in ${where}`);
        expect(statSync(where).mode & 0o777).to.equal(0o600);
      }
      expect(statSync(join(home, '.config/llmp')).mode & 0o777).to.equal(0o700);
    });

    it('in TOML that can be written by hand as well', async () => {
      write(`# mine
current = "a"
[contexts.a]
server = "https://a.example"
token_command = "pass show a"
protected = true
color = "red"
[contexts."b.c"]
server = "unix:/run/llmp.sock"
token_file = "~/b"
project_id = "web"
readonly = true
`);
      const { out } = await llmp('context list --json', { env });
      expect(JSON.parse(out)).to.deep.equal([
        {
          ...{ name: 'a', is_current: true, server: 'https://a.example', token: 'command', project_id: null },
          ...{ protected: true, readonly: false, color: 'red' },
        },
        {
          ...{ name: 'b.c', is_current: false, server: 'unix:/run/llmp.sock', token: '~/b', project_id: 'web' },
          ...{ protected: false, readonly: true, color: null },
        },
      ]);
    });

    it('and updated in part: other properties do not change', async () => {
      await add('prod', `--token-file ${tokenFile()} --protected --color red`);
      await llmp('context add prod --project-id web --no-protected', { env });
      const { out } = await llmp('context list --json', { env });
      const [context] = JSON.parse(out) as object[];
      expect(context).to.include({ server: daemon.url, project_id: 'web', protected: false, color: 'red' });
      await llmp(['context', 'add', 'prod', '--token-command', 'pass show prod'], { env });
      expect(readFileSync(path(), 'utf8')).to.contain('pass show prod').and.not.to.contain('token_file');
    });

    it('with the file of --management-token-file, and not with a secret or standard input', async () => {
      await add('prod', `--management-token-file ${tokenFile()}`);
      expect((await llmp('token list', { env })).exitCode).to.equal(0);
      const before = readFileSync(path(), 'utf8');
      for (const [more, says] of [
        [`--management-token ${canary('management')}`, 'a context contains no secrets'],
        ['--management-token-file -', 'cannot read standard input'],
        ['--token-file -', 'cannot read standard input'],
        ['--token-file a --management-token-file b', 'exclude each other'],
      ] as const) {
        const { exitCode, err } = await add('prod', more);
        expect(exitCode, more).to.equal(2);
        expect(err).to.contain(says);
      }
      expect(readFileSync(path(), 'utf8')).to.equal(before);
    });

    it('without a color for --no-color, which concerns the output', async () => {
      await add('prod', '--no-color');
      expect(readFileSync(path(), 'utf8')).not.to.contain('color');
      expect(await namesOf()).to.deep.equal(['prod*']);
    });

    it('with a warning for global options that have no effect', async () => {
      const { exitCode, err } = await llmp('context list --server http://a --reason b', { env });
      expect(exitCode).to.equal(0);
      expect(err).to.contain('warning: --server, --reason have no effect on llmp context list\n');
      expect((await llmp('audit verify -c prod --env-file /dev/null', { env })).err).to.contain(
        'warning: --context has no effect on llmp audit verify\n',
      );
      expect((await llmp('migrate status --direct -c prod', { env })).err).to.contain(
        '--direct and --context exclude each other',
      );
    });

    it('with the first as the current one, another after `context use`, and none after it was removed', async () => {
      await add('one');
      await add('two');
      expect(await namesOf()).to.deep.equal(['one*', 'two']);
      const { err } = await llmp('context use two', { env });
      expect(err).to.equal('Using two. Undo: llmp context use one\n');
      expect(await namesOf()).to.deep.equal(['one', 'two*']);
      await llmp('context remove two', { env });
      expect(await namesOf()).to.deep.equal(['one']);
    });

    it('as a table with a mark, on a terminal', async () => {
      await add('prod', '--protected --readonly');
      const { out } = await llmp('context list --no-color', { env, terminal: 120 });
      expect(out)
        .to.match(/^ +NAME +SERVER/)
        .and.to.match(new RegExp(`\\* +prod +${daemon.url}.+protected, read-only`));
    });

    it('never with credentials in the address, or with a name that is special to a shell', async () => {
      const canaryUrl = `https://user:${canary('management')}@host`;
      expect((await llmp(`context add prod --server ${canaryUrl}`, { env })).exitCode).to.equal(2);
      for (const name of ['$(id)', 'a b', '../up', '-x', '\u001b[2J', '']) {
        expect((await llmp(['context', 'add', '--server', daemon.url, '--', name], { env })).exitCode).to.equal(2);
      }
      expect(existsSync(path())).to.equal(false);
    });

    it('only if the user has a home folder; otherwise the exit code is 2, with advice', async () => {
      const { exitCode, err } = await llmp(`context add prod --server ${daemon.url}`, { env: {} });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('LLMP_CONFIG');
    });
  });

  describe('determine the daemon of a command', () => {
    it('and its management token', async () => {
      await add('prod');
      expect((await llmp('token list', { env })).exitCode).to.equal(0);
      expect(credentials()).to.deep.equal([`Bearer ${MANAGEMENT_TOKEN}`]);
    });

    it('first by -c, then by LLMP_CONTEXT, then by the current context', async () => {
      write('current = "nowhere"\n[contexts.nowhere]\nserver = "http://127.0.0.1:9"\n');
      await add('prod');
      for (const [line, more] of [
        ['-c prod token list', { LLMP_CONTEXT: 'nowhere', LLMP_SERVER: 'http://127.0.0.1:9' }],
        ['token list --context prod', {}],
        ['token list', { LLMP_CONTEXT: 'prod' }],
      ] as const) {
        expect((await llmp(line, { env: { ...env, ...more } })).exitCode).to.equal(0);
      }
      expect(daemon.asked).to.have.lengthOf(3);
      expect((await llmp('token list', { env: { ...env, MANAGEMENT_TOKEN } })).exitCode).to.equal(6);
    });

    it('but not if a server is given: no credential of a context is sent to another server', async () => {
      write(`current = "prod"\n[contexts.prod]\nserver = "http://127.0.0.1:9"\ntoken_file = "${tokenFile()}"\n`);
      for (const [line, more] of [
        [`token list --server ${daemon.url}`, {}],
        ['token list', { LLMP_SERVER: daemon.url }],
      ] as const) {
        const { exitCode } = await llmp(line, { env: { ...env, ...more } });
        expect(exitCode).to.equal(3);
      }
      expect(daemon.asked).to.deep.equal([]);
      expect((await llmp(`-c prod token list --server ${daemon.url}`, { env })).exitCode).to.equal(2);
    });

    it('and the project of new tokens', async () => {
      const real: TestDaemon = await startDaemon();
      try {
        await real.createProject({ name: 'one' });
        await real.createProject({ name: 'two' });
        const server = `--server ${real.url} --token-file ${tokenFile()}`;
        await llmp(`context add prod ${server} --project-id two`, { env });
        const { out, err } = await llmp('token generate --json', { env });
        const { project_id: id } = JSON.parse(out) as { project_id: string };
        const { out: project } = await llmp(`project get ${id} --json`, { env });
        expect(JSON.parse(project), err).to.include({ name: 'two' });
      } finally {
        await real.stop();
      }
    });

    it('an unknown one exits with 2, and nothing is sent', async () => {
      await add('prod');
      const { exitCode, err } = await llmp('-c prid token list', { env });
      expect(exitCode).to.equal(2);
      expect(err).to.contain('"prid"').and.to.contain('llmp context list');
      expect(daemon.asked).to.deep.equal([]);
    });
  });

  describe('the management token of a context', () => {
    it('comes from its command, which may fail', async () => {
      const secret = join(home, 'secret');
      writeFileSync(secret, 'what-pass-prints\n'); // None of those that must be printed nowhere.
      await llmp(['context', 'add', 'prod', '--server', daemon.url, '--token-command', `cat ${secret}`], { env });
      expect((await llmp('token list', { env })).exitCode).to.equal(0);
      expect(credentials()).to.deep.equal(['Bearer what-pass-prints']);
      await llmp(['context', 'add', 'prod', '--token-command', 'exit 7'], { env });
      const { exitCode, err } = await llmp('token list', { env });
      expect(exitCode).to.equal(3);
      expect(err).to.contain('prod').and.to.contain('exit code 7');
    });

    it('comes from its file only if other users cannot read the file', async () => {
      await add('prod', `--token-file ${tokenFile(0o640)}`);
      const { exitCode, err } = await llmp('token list', { env });
      expect(exitCode).to.equal(3);
      expect(err).to.contain('chmod 600');
      expect(daemon.asked).to.deep.equal([]);
    });

    it('comes before those of the environment, which may be for another daemon', async () => {
      await add('prod');
      for (const line of ['token list', '-c prod token list']) {
        const { err } = await llmp(line, { env: { ...env, MANAGEMENT_TOKEN: ANOTHER_TOKEN } });
        expect(err).to.contain('MANAGEMENT_TOKEN is ignored: context prod has its own management token');
      }
      expect(credentials()).to.deep.equal(Array(2).fill(`Bearer ${MANAGEMENT_TOKEN}`));
    });

    it('of the environment is used if the context has none', async () => {
      await llmp(['context', 'add', 'bare', '--server', daemon.url], { env });
      await llmp('-c bare token list', { env: { ...env, MANAGEMENT_TOKEN: ANOTHER_TOKEN } });
      expect(credentials()).to.deep.equal([`Bearer ${ANOTHER_TOKEN}`]);
    });
  });

  describe('with limits', () => {
    const ID = '00000000-0000-4000-8000-000000000000';
    const changes = () => daemon.asked.filter(({ method }) => method !== 'GET');

    it('read-only refuses changes, but allows queries and dry runs', async () => {
      await add('prod', `--token-file ${tokenFile()} --readonly`);
      for (const line of [
        `token revoke ${ID}`,
        `token generate --project-id ${ID}`,
        `project deactivate ${ID}`,
        'cache purge --all --yes',
        'migrate up',
      ]) {
        const { exitCode, err } = await llmp(line, { env });
        expect(exitCode, line).to.equal(1);
        expect(err).to.contain('read-only');
      }
      expect(changes()).to.deep.equal([]);
      expect((await llmp('token list', { env })).exitCode).to.equal(0);
      await llmp('cache purge --all --dry-run', { env });
      expect(changes().map(({ url }) => url)).to.deep.equal(['/manage/cache/purge']);
    });

    it('protected asks once before a change, and requires --yes without a terminal', async () => {
      await add('prod', `--token-file ${tokenFile()} --protected`);
      expect((await llmp(`token revoke ${ID}`, { env })).exitCode).to.equal(2);
      expect(changes()).to.deep.equal([]);
      const { err } = await llmp(`token revoke ${ID}`, { env, terminal: 80, answer: 'y\n' });
      expect(err).to.contain('prod is protected');
      await llmp(`token revoke ${ID} --yes`, { env });
      expect(changes()).to.have.lengthOf(2);
    });

    it('protected asks before the context is removed', async () => {
      await add('prod', '--protected');
      expect((await llmp('context remove prod', { env })).exitCode).to.equal(2);
      expect((await llmp('context remove prod --yes', { env })).exitCode).to.equal(0);
    });
  });

  describe('in an invalid file', () => {
    const files: Record<string, [content: string, says: RegExp]> = {
      'no TOML': ['current = \n', /line 1/],
      'an unknown word': ['[contexts.prod]\nserver = "http://a"\ntokenfile = "x"\n', /unknown property "tokenfile"/],
      'a value of another kind': ['[contexts.prod]\nserver = "http://a"\nprotected = "yes"\n', /true or false/],
      'no server': ['[contexts.prod]\ncolor = "red"\n', /has no server/],
      'an address with credentials': [
        '[contexts.prod]\nserver = "http://a:b@c"\n',
        /contexts\.prod\.server must not contain/,
      ],
      'a colour that there is not': ['[contexts.prod]\nserver = "http://a"\ncolor = "mauve"\n', /one of red/],
    };
    for (const [what, [content, says]] of Object.entries(files)) {
      it(`${what} exits with 2 and names the place`, async () => {
        write(content);
        const { exitCode, err } = await llmp('token list', { env: { ...env, MANAGEMENT_TOKEN } });
        expect(exitCode).to.equal(2);
        expect(err).to.match(says);
        expect(err.trimEnd().split('\n').length).to.be.at.most(3);
      });
    }

    for (const [what, at, mode, says] of [
      ['that others can write', 'file', 0o622, 'chmod go-w'],
      ['in a folder that others can write', 'folder', 0o777, 'is writable by other users'],
      ['that belong to another user', 'file', null, 'belongs to another user'],
      ['in a folder that belongs to another user', 'folder', null, 'belongs to another user'],
    ] as const) {
      it(`${what} are not used`, async function () {
        if (mode === null && process.getuid?.() !== 0) this.skip(); // Only root can change the owner of a file.
        write(`current = "prod"\n[contexts.prod]\nserver = "${daemon.url}"\ntoken_command = "touch ${home}/ran"\n`);
        const file = contextsPath(env) ?? '';
        const path = at === 'file' ? file : dirname(file);
        if (mode === null) chownSync(path, 65_534, 65_534);
        else chmodSync(path, mode);
        const { exitCode, err } = await llmp('token list', { env });
        expect(exitCode).to.equal(2);
        expect(err).to.contain(says);
        expect(existsSync(join(home, 'ran'))).to.equal(false);
        expect(daemon.asked).to.deep.equal([]);
      });
    }

    it('do not affect commands that need no daemon', async () => {
      write('current = \n');
      expect((await llmp('help token', { env })).exitCode).to.equal(0);
      expect(
        (await llmp(`token list --server ${daemon.url}`, { env: { ...env, MANAGEMENT_TOKEN } })).exitCode,
      ).to.equal(0);
    });
  });
});
