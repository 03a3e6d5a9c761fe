import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { daemonForEachTest } from '../support/daemon.js';
import { aWireToken } from '../support/factories.js';
import { jqRenderer } from '../../cli/renderers/jq.js';
import { commandsAt } from './captured.js';
import { responds, startStandIn } from './stand-in.js';

// Content of a hostile name: clear the screen, a bell, a turned direction.
const HOSTILE = '\u001b[2J\u0007\u202e"\\';
const SECRET = /^sk-wt-[0-9A-Za-z]{49}$/;

describe('output for programs', () => {
  const daemon = daemonForEachTest();
  const { here } = commandsAt(daemon);
  let project: WireProject;
  let tokens: WireToken[];

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
    const names = ['ci-deploy', 'true', 'two words'];
    tokens = [];
    for (const name of names) {
      tokens.push(await daemon.createToken(project.id, { name, max_requests: 9 }));
      daemon.clock.advance(1000);
    }
  });

  const list = (...args: string[]) => here(['token', 'list', '--sort', 'created_at', ...args]);

  describe('-o yaml', () => {
    it('has the same value as JSON, for lists and for objects', async () => {
      const same = async (...args: string[]) => {
        const [yaml, json] = [await here([...args, '-o', 'yaml']), await here([...args, '-o', 'json'])];
        expect(yaml.exitCode, args.join(' ')).to.equal(0);
        expect(parse(yaml.out), args.join(' ')).to.deep.equal(JSON.parse(json.out));
      };
      await same('token', 'list');
      await same('token', 'get', tokens[0]!.id);
      await same('project', 'list');
      await same('usage', '--by', 'token');
      await same('audit', 'list');
      await same('version');
    });

    it('is requested by LLMP_OUTPUT too, and is the same on a terminal', async () => {
      const { out } = await here(['token', 'get', tokens[0]!.id], { env: { LLMP_OUTPUT: 'yaml' }, terminal: 80 });
      expect(out)
        .to.match(/^id: \S+\n/)
        .and.to.contain('\nname: ci-deploy\n');
    });

    it('keeps the type of texts that look like others, and escapes control characters', async () => {
      expect((await list('-o', 'yaml')).out).to.contain('name: "true"');
      const standIn = await startStandIn();
      const names = [HOSTILE, 'ends: with #hash', '- dash', '1e3', 'null', 'é\u2028', 'a\nb', 'word '.repeat(40)];
      standIn.answer = responds(names.map((name) => aWireToken({ name })));
      const { out } = await here(['token', 'list', '-o', 'yaml'], { env: { LLMP_SERVER: standIn.url } });
      await standIn.stop();
      expect(out).to.match(/^(?:[^\p{C}\p{Zl}\p{Zp}]|\n)*$/u);
      expect((parse(out) as WireToken[]).map(({ name }) => name)).to.deep.equal(names);
    });
  });

  describe('--jq', () => {
    const jq = (program: string, ...args: string[]) => list('--jq', program, ...args);

    it('prints texts as they are, and other results as JSON, one per line', async () => {
      expect((await jq('.[].name')).out).to.equal('ci-deploy\ntrue\ntwo words\n');
      expect((await jq('.[0] | {name, max_requests}')).out).to.equal('{"name":"ci-deploy","max_requests":9}\n');
      expect((await jq('length, "", null, (map(.max_requests) | add)')).out).to.equal('3\n\nnull\n27\n');
      expect((await jq('empty')).out).to.equal('');
      expect((await jq('.[] | [.name, .project_name] | @tsv')).out.split('\n')[2]).to.equal('two words\tweb');
    });

    it('is jq: functions, regular expressions, grouping, variables, dates and formats', async () => {
      const results: [program: string, result: string][] = [
        ['def twice: . * 2; .[0].max_requests | twice', '18'],
        ['[.[] | select(.name | test("^T"; "i")) | .name] | join("+")', 'true+two words'],
        ['group_by(.project_name) | map({(.[0].project_name): length}) | add', '{"web":3}'],
        ['reduce .[] as $t (0; . + $t.max_requests)', '27'],
        ['.[0].created_at | sub("\\\\.\\\\d+Z$"; "Z") | fromdate | type', 'number'],
        ['first(.[] | .name) | @base64', 'Y2ktZGVwbG95'],
        ['try error("x") catch .', 'x'],
        ['[limit(3; repeat(1))]', '[1,1,1]'],
        ['.[0] | to_entries | map(.key) | index("id")', '0'],
        ['-1', '-1'],
      ];
      for (const [program, result] of results) {
        expect(await jq(program), program).to.deep.equal({ exitCode: 0, out: `${result}\n`, err: '' });
      }
    });

    it('works for an object, for the result of a change, and for each item of a stream', async () => {
      const [first] = tokens;
      expect((await here(['token', 'get', first!.id, '--jq', '.name'])).out).to.equal('ci-deploy\n');
      const revoked = await here(['token', 'revoke', first!.id, '--jq', '.state']);
      expect(revoked.out).to.equal('revoked\n');
      await here(['token', 'reactivate', first!.id]);
      const { out } = await here(['audit', 'export', '--jq', '.action']);
      expect(out.split('\n')).to.include.members(['token.create', 'project.create', 'token.revoke']);
    });

    it('shows control characters of names escaped, but keeps the tabs and line ends of the program', async () => {
      const text = JSON.stringify(HOSTILE);
      expect((await jq(text)).out).to.equal('\\x1b[2J\\x07\\u202e"\\\n');
      expect((await jq(`[${text}]`)).out).to.match(/^\["\\u001b\[2J\\u0007\\u202e/);
      expect((await jq('"a\\tb\\nc"')).out).to.equal('a\tb\nc\n');
    });

    it('exits 2 for a program that cannot be compiled, points at the place, and sends nothing', async () => {
      const { exitCode, out, err } = await here(['token', 'generate', '--jq', '.token | nme', '--name', 'never']);
      expect({ exitCode, out }).to.deep.equal({ exitCode: 2, out: '' });
      expect(err).to.equal('llmp: --jq: nme/0 is not defined\n  .token | nme\n           ^^^\n');
      expect((await here(['token', 'list', '--search', 'never', '-o', 'id'])).out).to.equal('');
      for (const program of ['.[', '', '--help', '$x', 'include "a"; .', '|']) {
        const failed = await jq(program);
        expect(failed.exitCode, program).to.equal(2);
        expect(failed.err, program).to.match(/^llmp: --jq: /);
      }
    });

    it('exits 1 for a program that fails on the data, or needs too much memory', async () => {
      const failed = await jq('.name');
      expect(failed).to.include({ exitCode: 1, out: '' });
      expect(failed.err).to.equal(
        'llmp: --jq: Cannot index array with string ("name")\n  The program is valid, but not for this data\n  See the data with: -o json\n',
      );
      const large = await jq('def f: 1 + f; f');
      expect(large.exitCode).to.equal(1);
      expect(large.err).to.contain('--jq: the program needs too much memory');
    }).timeout(60_000);

    it('ends a program that never ends at ^C', async () => {
      const ended = await here(['token', 'list', '--jq', 'def f: f; f'], { interrupted: Promise.resolve() });
      expect(ended).to.deep.equal({ exitCode: 130, out: '', err: '' });
    });

    it('ends a program whose results need too much memory', async () => {
      const shell = { interruptible: <T>(work: Promise<T>) => work };
      const renderer = await jqRenderer('range(1e12)', shell, 15_000_000);
      const failure = await Promise.resolve(renderer.all([], [], [])).catch((error: unknown) => error);
      expect(failure).to.include({ exitCode: 1, message: '--jq: the program needs too much memory' });
    }).timeout(120_000);

    it('reads neither the environment nor files', async () => {
      expect((await jq('env | has("MANAGEMENT_TOKEN", "LLMP_SERVER")')).out).to.equal('false\nfalse\n');
      expect((await jq('import "/etc/passwd" as $p; $p')).exitCode).to.equal(2);
    });

    it('prints a secret as -o json does, also with -q, and says what to do if the program fails on it', async () => {
      const issued = await here(['token', 'generate', '--name', 'jq', '--jq', '.token']);
      expect(issued.out.trimEnd()).to.match(SECRET);
      const quiet = await here(['token', 'generate', '--name', 'jq', '-q', '--jq', '.name']);
      expect(quiet).to.deep.equal({ exitCode: 0, out: 'jq\n', err: '' });
      const lost = await here(['token', 'generate', '--name', 'lost', '--jq', '.token + 1']);
      expect(lost).to.include({ exitCode: 1, out: '' });
      expect(lost.err)
        .to.match(/Revoke the token, whose secret is lost: llmp token revoke \S+\n/)
        .and.not.match(/sk-wt-\w/);
    });
  });

  describe('--template', () => {
    it('prints a line for each item, with its fields', async () => {
      expect((await list('--template', '{{.name}}\\t{{ .project_name }}:{{.max_requests}}\\\\')).out).to.equal(
        'ci-deploy\tweb:9\\\ntrue\tweb:9\\\ntwo words\tweb:9\\\n',
      );
      const { out } = await here([
        'token',
        'get',
        tokens[1]!.id,
        '--template',
        'a\\nb {{.last_used_at}}|{{.is_active}}',
      ]);
      expect(out).to.equal('a\nb |true\n');
      expect((await here(['status', '--template', '{{.database.status}}'])).out).to.equal('ok\n');
    });

    it('refuses an unknown field, and suggests a similar one', async () => {
      for (const [template, says] of [
        ['{{.nam}}', 'there is no field {{.nam}}\n  Did you mean name?\n  Fields: id, '],
        ['{{.toString}}', 'there is no field {{.toString}}\n'],
        ['{{.name.first}}', 'there is no field {{.name.first}}\n  {{.name}} has no fields\n'],
      ] as const) {
        const { exitCode, out, err } = await list('--template', template);
        expect({ exitCode, out }).to.deep.equal({ exitCode: 1, out: '' });
        expect(err).to.contain(`llmp: --template: ${says}`);
      }
      const { exitCode, err } = await here(['status', '--template', '{{.database.state}}']);
      expect(exitCode).to.equal(1);
      expect(err).to.contain('Did you mean status?');
    });

    it('shows nothing for a field that is null, or that only other items have', async () => {
      expect((await list('--limit', '1', '--template', '<{{.last_used_at}}>')).out).to.equal('<>\n');
      const records = await here(['audit', 'list', '--template', '<{{.reason}}{{.reason.more}}{{.details.never}}>']);
      expect(records.exitCode).to.equal(0);
      expect(records.out).to.match(/^(?:<>\n)+$/);
      const standIn = await startStandIn();
      standIn.answer = responds([{ id: '1', kind: 'change', action: 'token.create' }]);
      const events = await commandsAt(standIn).here(['events', 'list', '--template', '{{.action}}<{{.model}}>']);
      await standIn.stop();
      expect(events.out).to.equal('token.create<>\n');
    });

    it('shows an object as JSON', async () => {
      expect(JSON.parse((await here(['token', 'get', tokens[0]!.id, '--template', '{{.}}'])).out)).to.include({
        name: 'ci-deploy',
      });
    });

    it('evaluates nothing: anything but a field is refused before something is sent', async () => {
      for (const template of [
        '{{range .}}',
        '{{.a | len}}',
        '{{.a()}}',
        '{{.a',
        '{{}}',
        '{{name}}',
        '{{.a..b}}',
        '{{\n}}',
      ]) {
        const { exitCode, out, err } = await here(['token', 'generate', '--template', template]);
        expect({ exitCode, out }, template).to.deep.equal({ exitCode: 2, out: '' });
        expect(err, template).to.contain('llmp: --template: ').and.to.contain('Write fields as {{.name}}');
      }
    });
  });

  describe('--template of a command that changes something', () => {
    for (const args of [
      ['token', 'generate'],
      ['token', 'generate', '--like', 'ci-deploy'],
      ['token', 'print'],
      ['token', 'revoke', 'ci-deploy'],
      ['token', 'revoke', '--project-id', 'web'],
      ['token', 'revoke', '--query', 'ci'],
      ['token', 'reactivate', 'ci-deploy'],
      ['project', 'create', '--name', 'new', '--no-check'],
      ['project', 'update', 'web', '--name', 'new'],
      ['project', 'set-key', 'web', '--no-check'],
      ['project', 'deactivate', 'web'],
      ['project', 'activate', 'web'],
      ['project', 'revoke-tokens', 'web'],
      ['cache', 'purge', '--all'],
      ['migrate', 'up'],
    ]) {
      it(`is refused before ${args.join(' ')} sends anything, if the field does not exist`, async () => {
        const standIn = await startStandIn();
        for (const template of ['{{.nam}}', '{{.id.part}}', 'x{{.tokens}}']) {
          const { exitCode, out, err } = await commandsAt(standIn).here([...args, '--yes', '--template', template], {
            stdin: 'a key',
          });
          expect({ exitCode, out }, template).to.deep.equal({ exitCode: 1, out: '' });
          expect(err).to.contain('llmp: --template: there is no field');
        }
        expect(standIn.asked).to.be.empty;
        await standIn.stop();
      });
    }

    it('can have each field of the result, and those that another result has', async () => {
      const shown = async (...args: string[]) => {
        const { exitCode, out, err } = await here([...args, '--yes']);
        expect(exitCode, err).to.equal(0);
        return out;
      };
      expect(await shown('token', 'generate', '--template', '{{.state}} {{.project_name}} {{.token}}')).to.match(
        /^active web sk-wt-\w{49}\n$/,
      );
      expect(
        await shown('project', 'update', 'web', '--name', 'site', '--template', '{{.name}}<{{.key_check}}>'),
      ).to.equal('site<>\n');
      expect(await shown('project', 'revoke-tokens', 'site', '--template', '{{.revoked_count}} {{.message}}')).to.match(
        /^4 /,
      );
      expect(await shown('cache', 'purge', '--all', '--template', '{{.purged}} {{.purged_count}}')).to.equal('all 0\n');
    });
  });

  it('excludes other formats, except JSON, whose value jq gets', async () => {
    for (const args of [
      ['--jq', '.', '--template', 'x'],
      ['--jq', '.', '-o', 'csv'],
      ['--template', 'x', '-o', 'yaml'],
    ]) {
      const { exitCode, err } = await list(...args);
      expect(exitCode, args.join(' ')).to.equal(2);
      expect(err).to.contain('exclude each other');
    }
    expect((await list('--jq', 'length', '--json')).out).to.equal('3\n');
    expect((await here(['token', 'list', '--jq', 'length'], { env: { LLMP_OUTPUT: 'csv' } })).out).to.match(/^\d+\n$/);
  });

  it('streams YAML documents, and results of jq and templates for each item', async () => {
    const { out } = await here(['audit', 'export', '-o', 'yaml']);
    const documents = parseAllDocuments(out).map((document) => document.toJS() as { action: string });
    expect(documents.map(({ action }) => action)).to.include('project.create');
    const { out: texts } = await here(['audit', 'export', '--template', '{{.action}}']);
    expect(texts.trimEnd().split('\n')).to.have.length(documents.length);
  });
});
