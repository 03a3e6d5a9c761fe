/** `llmp token generate --from FILE` and `--query QUERY`: many tokens. */
import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject, WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { csvRows } from '../../console/csv.js';
import { daemonForEachTest, temporaryFolder } from '../support/daemon.js';
import { aWireProject, aWireToken } from '../support/factories.js';
import { commandsAt, type Situation } from './captured.js';
import { answerJson, refuse, startStandIn, type StandIn } from './stand-in.js';

const SECRET = /sk-wt-[0-9A-Za-z]{49}/;
const HOUR_MS = 3_600_000;

/** The rows of a CSV file as objects. */
function rowsOf(text: string): Record<string, string>[] {
  const [titles, ...rows] = csvRows(text, 1_000).map(({ cells }) => cells);
  return rows.map((cells) => Object.fromEntries((titles ?? []).map((title, at) => [title, cells[at] ?? ''])));
}

describe('llmp token generate, of many tokens', () => {
  const daemon = daemonForEachTest();
  const { here, json } = commandsAt(daemon);
  let web: WireProject;
  let folder: string;
  // A file with this name may have a secret in it.
  const file = (text: string | Buffer, name = 'secrets-class.csv') => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const tokens = () => json<WireToken[]>('token list --sort created_at');
  const hours = ({ expires_at: until, created_at: from }: WireToken) =>
    (Date.parse(until) - Date.parse(from)) / HOUR_MS;

  beforeEach(async () => {
    web = await daemon.createProject({ name: 'web' });
    folder = temporaryFolder();
  });

  describe('--from', () => {
    const issue = (text: string, ...args: string[]) =>
      here(['token', 'generate', '--from', file(text), '--yes', ...args]);

    it('issues a token for each row, with the options as defaults, and prints the secrets as CSV', async () => {
      await daemon.createProject({ name: 'other' });
      const csv = 'name,project,duration,max-requests\r\nana,web,90m,10\r\n"kim, l",other,2d,0\r\n';
      const { exitCode, out, err } = await issue(csv);
      expect(exitCode, err).to.equal(0);
      const rows = rowsOf(out);
      expect(
        rows.map(({ name, project_name: project, max_requests: cap, line }) => [name, project, cap, line]),
      ).to.deep.equal([
        ['ana', 'web', '10', '2'],
        ['kim, l', 'other', '0', '3'],
      ]);
      expect(rows.map(({ token }) => SECRET.test(token ?? ''))).to.deep.equal([true, true]);
      expect((await tokens()).map(hours)).to.deep.equal([1.5, 48]);
      const again = await issue(
        'name\nlena\n',
        '--project-id',
        'web',
        '--duration',
        '3',
        '--max-requests',
        '7',
        '-o',
        'json',
      );
      const [lena] = JSON.parse(again.out) as (WireTokenCreated & { line: number })[];
      expect(lena).to.include({ name: 'lena', max_requests: 7, project_id: web.id, line: 2 });
      expect((await tokens()).map(hours)).to.deep.equal([1.5, 48, 3]);
    });

    it('takes columns that are named as fields are, in any order, from a spreadsheet of any language', async () => {
      const { exitCode, err } = await issue('\ufeffMax_Requests;Project_ID;Name\n5;web;ana\n');
      expect(exitCode, err).to.equal(0);
      expect((await tokens())[0]).to.include({ name: 'ana', max_requests: 5 });
    });

    it('reads standard input, and issues like another token', async () => {
      const { id } = await daemon.createToken(web.id, { name: 'old', max_requests: 4, duration_hours: 5 });
      const stdin = `like,name\n${id.slice(0, 8)},new\n`;
      const { exitCode, err, out } = await here('token generate --from - --yes -o jsonl', { stdin });
      expect(exitCode, err).to.equal(0);
      expect(JSON.parse(out)).to.include({ name: 'new', max_requests: 4, like: id });
    });

    it('writes the secrets to a new file that only the user can read, by the end of its name', async () => {
      for (const [end, read] of [
        ['csv', (text: string) => rowsOf(text)],
        ['json', (text: string) => JSON.parse(text) as unknown[]],
        [
          'jsonl',
          (text: string) =>
            text
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as unknown),
        ],
      ] as const) {
        const out = join(folder, `secrets.${end}`);
        const result = await issue('name\nana\nkim\n', '--out', out);
        expect(result.exitCode, result.err).to.equal(0);
        expect(result.out + result.err).not.to.match(SECRET);
        expect(result.err).to.contain(`Issued 2 tokens. The secrets are in ${out}, readable by you only.`);
        expect(statSync(out).mode & 0o777).to.equal(0o600);
        expect(read(readFileSync(out, 'utf8')))
          .to.have.length(2)
          .and.to.have.nested.property('[1].name', 'kim');
        const twice = await issue('name\nana\n', '--out', out);
        expect(twice).to.include({ exitCode: 2 });
        expect(twice.err).to.contain('already exists and is not overwritten');
      }
      expect(await tokens()).to.have.length(6);
    });

    it('names the command that revokes them all', async () => {
      const { err } = await issue('name\nana\nkim\n');
      const [, batch = ''] = /Undo: llmp undo (\S+)/.exec(err) ?? [];
      expect((await here(`undo ${batch} --yes`)).exitCode).to.equal(0);
      expect((await tokens()).map(({ state }) => state)).to.deep.equal(['revoked', 'revoked']);
    });

    it('writes no formula into a file for spreadsheets', async () => {
      const { out } = await issue('name\n"=HYPERLINK(1)"\n');
      expect(rowsOf(out)[0]?.name).to.equal("'=HYPERLINK(1)");
      expect(await tokens()).to.have.nested.property('[0].name', '=HYPERLINK(1)');
    });

    it('asks how many tokens to issue, and needs --yes without a terminal', async () => {
      const path = file('name\nana\nkim\n');
      const { exitCode, err } = await here(['token', 'generate', '--from', path]);
      expect(exitCode).to.equal(2);
      expect(err).to.contain('confirmation required');
      const asked = await here(['token', 'generate', '--from', path], { terminal: 100, answer: 'n\n' });
      expect(asked.err).to.contain('Issue 2 tokens for project web?');
      expect(asked.exitCode).to.equal(2);
      expect(await tokens()).to.be.empty;
    });

    it('shows with --dry-run what it would issue, and writes no file', async () => {
      const out = join(folder, 'secrets.csv');
      const { exitCode, err, out: shown } = await issue('name,max-requests\nana,3\n', '-n', '-o', 'json', '--out', out);
      expect(exitCode, err).to.equal(0);
      expect(JSON.parse(shown)).to.deep.equal([
        {
          line: 2,
          like: null,
          name: 'ana',
          project: 'web',
          lifetime: '24h',
          max_requests: 3,
          allow: null,
          limits: null,
          budget: null,
        },
      ]);
      expect(existsSync(out)).to.equal(false);
      expect((await here(['token', 'generate', '--from', file('name\nana\n'), '-n'])).err).to.contain(
        'Would issue 1 token. Nothing was changed.',
      );
      expect(await tokens()).to.be.empty;
    });

    const SHOWN = `sk-wt-${'d'.repeat(49)}`;
    for (const [what, csv, ...says] of [
      [
        'an unknown column',
        'name,max_request\nana,5\n',
        'line 1, column 2: there is no column',
        'Did you mean max-requests?',
      ],
      ['a column without a name', 'name,\nana,5\n', 'line 1, column 2: the column has no name'],
      ['a column that occurs twice', 'name,Name\nana,kim\n', 'line 1, column name: the column occurs twice'],
      ['a missing value', 'name,max-requests\nana,\n', 'line 2, column max-requests: the value is missing'],
      ['a row that is too short', 'name,duration\nana,5\nkim\n', 'line 3: 1 value for 2 columns'],
      ['a row that is too long', 'name\nana,5\n', 'line 2: 2 values for 1 columns'],
      ['a wrong duration', 'name,duration\nana,5\nkim,9y\n', 'line 3, column duration: must be hours from 1', '"9y"'],
      ['a wrong cap', 'max-requests\n-1\n', 'line 2, column max-requests: must be a whole number'],
      ['an unknown project', 'name,project\nana,web\nkim,wep\n', 'line 3, column project: no project has'],
      ['an inactive project', 'project\nweb\nidle\n', 'line 3, column project: project idle is inactive'],
      ['an unknown token', 'like\nnobody\n', 'line 2, column like: no token has'],
      ['a name with a control character', 'name\n"a\u0007b"\n', 'line 2, column name: is not a name'],
      ['a secret', `name\n${SHOWN}\n`, 'line 2, column name: this is a secret'],
      ['a quote that is not closed', 'name\nana\n"kim\n', 'line 3, column 1: a quote is not closed'],
      ['no rows', 'name\n', 'has no rows'],
      ['nothing', '', 'is empty'],
      [
        'several mistakes',
        'duration,max-requests\n9y,x\n1y,y\n',
        '4 mistakes in ',
        'line 2, column duration',
        'line 3, column max-requests',
      ],
    ] as const) {
      it(`refuses a file with ${what} before anything is issued`, async () => {
        const idle = await daemon.createProject({ name: 'idle' });
        await daemon.manage('PATCH', `/manage/projects/${idle.id}`, { is_active: false });
        const { exitCode, out, err } = await issue(csv);
        expect({ exitCode, out }, err).to.deep.equal({ exitCode: 2, out: '' });
        for (const words of says) expect(err).to.contain(words);
        expect(err).not.to.contain('ddd');
        expect(await tokens()).to.be.empty;
      });
    }

    it('names the option, not a column, if a value that does not fit is from the command', async () => {
      const { exitCode, err } = await issue('name,project\nana,web\n', '--like', 'nobody');
      expect({ exitCode, err }).to.deep.include({ exitCode: 2 });
      expect(err).to.contain('line 2, option --like: no token has');
      expect((await issue('name\nana\n', '--project-id', 'wep')).err).to.contain(
        'line 2, option --project-id: no project has',
      );
      expect((await issue('name\nana\n', '--project-id', 'web')).exitCode).to.equal(0);
    });

    it('refuses what is not text, and more rows or bytes than it reads', async () => {
      const refused = async (path: string, ...args: string[]) => {
        const { exitCode, err } = await here(['token', 'generate', '--from', path, '--yes', ...args]);
        expect(exitCode).to.equal(2);
        return err;
      };
      expect(await refused(file(Buffer.from('name\nana\n', 'utf16le')))).to.contain('cannot read the tokens to issue');
      expect(await refused(file(`name\n${'a\n'.repeat(10_001)}`))).to.contain('more than 10000 rows');
      expect(await refused(file(`name\n${'a'.repeat(9 * 1024 ** 2)}\n`))).to.contain('more than 8 MiB');
      expect(await refused(join(folder, 'missing.csv'))).to.contain('ENOENT');
      expect(await tokens()).to.be.empty;
    });

    for (const args of [
      '--from x.csv --query web',
      '--query web --like x',
      '--from x.csv --env KEY',
      '--query web --start-line 5',
      '--dry-run',
      '--start-line 3',
      '--from x.csv -o id',
      '--from x.csv -o yaml',
      '--from x.csv --jq .',
      '--from x.csv --template {{.id}}',
    ]) {
      it(`refuses ${args}`, async () => {
        expect(await here(`token generate --yes ${args}`)).to.include({ exitCode: 2, out: '' });
      });
    }

    it('says halfway which rows were issued, keeps their secrets, and continues with --start-line', async () => {
      const standIn = await startStandIn();
      const created = failsAt(standIn, 2);
      const env = { LLMP_SERVER: standIn.url };
      const path = file('name\none\ntwo\nthree\nfour\n');
      const out = join(folder, 'secrets.csv');
      const failed = await here(['token', 'generate', '--from', path, '--yes', '--out', out], { env });
      expect(failed.exitCode).to.equal(5);
      expect(failed.err)
        .to.contain('llmp: line 4: ')
        .and.to.contain(`Issued 2 of 4 tokens. The secrets are in ${out}`)
        .and.to.contain('Issue the rest with --start-line 4 and another --out');
      expect(rowsOf(readFileSync(out, 'utf8')).map(({ name }) => name)).to.deep.equal(['one', 'two']);
      created.failAt = Infinity;
      const rest = await here(['token', 'generate', '--from', path, '--yes', '--start-line', '4'], { env });
      await standIn.stop();
      expect(rowsOf(rest.out).map(({ name }) => name)).to.deep.equal(['three', 'four']);
      expect(created.names).to.deep.equal(['one', 'two', 'three', 'four']);
    });

    it('says that a token may have been issued if there was no response', async () => {
      const standIn = await startStandIn();
      failsAt(standIn, 1, (_req, res) => res.destroy());
      const { exitCode, out, err } = await here(['token', 'generate', '--from', file('name\none\ntwo\n'), '--yes'], {
        env: { LLMP_SERVER: standIn.url },
      });
      await standIn.stop();
      expect(exitCode).to.equal(6);
      expect(rowsOf(out).map(({ name }) => name)).to.deep.equal(['one']);
      expect(err).to.contain('It may have been issued all the same');
    });

    it('stops after ^C with the token that is being issued', async () => {
      const standIn = await startStandIn();
      let press: (value?: unknown) => void = () => undefined;
      const interrupted = new Promise((resolve) => (press = resolve));
      const created = failsAt(standIn, Infinity);
      created.onCreate = (count) => {
        if (count === 2) press();
      };
      const situation: Situation = { env: { LLMP_SERVER: standIn.url }, interrupted };
      const { exitCode, out, err } = await here(
        ['token', 'generate', '--from', file('name\none\ntwo\nthree\nfour\n'), '--yes'],
        situation,
      );
      await standIn.stop();
      expect(exitCode).to.equal(130);
      expect(rowsOf(out)).to.have.length(created.names.length).and.to.have.length.below(4);
      expect(err).to.contain(`Issued ${created.names.length} of 4 tokens.`);
    });
  });

  describe('--query', () => {
    it('issues the selected tokens again, with their terms, into a file that names the old ones', async () => {
      const old = [];
      for (const name of ['ana', 'kim'])
        old.push(await daemon.createToken(web.id, { name, max_requests: 9, duration_minutes: 90 }));
      daemon.clock.advance(2 * HOUR_MS);
      await daemon.createToken(web.id, { name: 'live' });
      const out = join(folder, 'secrets.csv');
      const { exitCode, err } = await here(['token', 'generate', '--query', 'state:expired', '--out', out, '--yes']);
      expect(exitCode, err).to.equal(0);
      const rows = rowsOf(readFileSync(out, 'utf8'));
      expect(rows.map(({ name, like }) => [name, like])).to.have.deep.members(old.map(({ name, id }) => [name, id]));
      const issued = (await tokens()).filter(({ name, state }) => name !== 'live' && state === 'active');
      expect(issued.map((token) => [token.max_requests, hours(token)])).to.deep.equal([
        [9, 1.5],
        [9, 1.5],
      ]);
    });

    it('replaces the terms that are given', async () => {
      await daemon.createToken(web.id, { name: 'ana', max_requests: 9 });
      const { out } = await here('token generate --query ana --max-requests 1 --duration 3 --yes -o json');
      const [issued] = JSON.parse(out) as WireTokenCreated[];
      expect(issued).to.include({ name: 'ana', max_requests: 1 });
      expect(hours((await tokens()).find(({ id }) => id === issued?.id)!)).to.equal(3);
    });

    it('leaves out tokens of inactive projects, and does nothing for an empty selection', async () => {
      const idle = await daemon.createProject({ name: 'idle' });
      await daemon.createToken(idle.id, { name: 'ci-idle' });
      await daemon.createToken(web.id, { name: 'ci-web' });
      await daemon.manage('PATCH', `/manage/projects/${idle.id}`, { is_active: false });
      const { out, err } = await here('token generate --query ci --yes');
      expect(err).to.contain('1 token of inactive projects cannot be issued again');
      expect(rowsOf(out).map(({ name }) => name)).to.deep.equal(['ci-web']);
      const none = await here('token generate --query nobody --yes');
      expect(none).to.include({ exitCode: 0, out: '' });
      expect(none.err).to.contain('No matching tokens.');
      expect(await here(['token', 'generate', '--query', ' ', '--yes'])).to.include({ exitCode: 2 });
    });

    it('leaves a file for the rest after a failure', async () => {
      const standIn = await startStandIn();
      const created = failsAt(standIn, 1);
      const env = { LLMP_SERVER: standIn.url, XDG_STATE_HOME: folder };
      const failed = await here('token generate --query ci --yes', { env });
      expect(failed.exitCode).to.equal(5);
      const [rest = ''] = readdirSync(join(folder, 'llmp'));
      expect(failed.err).to.contain(`--from '${join(folder, 'llmp', rest)}' in place of --query`);
      created.failAt = Infinity;
      const again = await here(['token', 'generate', '--from', join(folder, 'llmp', rest), '--yes'], { env });
      await standIn.stop();
      expect(again.exitCode, again.err).to.equal(0);
      expect(created.likes).to.have.length(3);
      expect(new Set(created.likes).size).to.equal(3);
    });
  });
});

interface Created {
  /** Of the tokens that were issued. */
  names: (string | undefined)[];
  likes: (string | undefined)[];
  /** The number of the request that fails, from 0. */
  failAt: number;
  onCreate: (count: number) => void;
}

/** A daemon with a project and three tokens, which refuses to issue one token. */
function failsAt(standIn: StandIn, failAt: number, fail: StandIn['answer'] = refused): Created {
  const project = aWireProject({ id: '00000000-0000-4000-8000-000000000001', name: 'web' });
  const known = [1, 2, 3].map((at) =>
    aWireToken({ id: `1000000${at}-0000-4000-8000-00000000000${at}`, name: `ci-${at}`, project_id: project.id }),
  );
  const created: Created = { names: [], likes: [], failAt, onCreate: () => undefined };
  standIn.answer = (req, res) => {
    const { pathname } = new URL(req.url ?? '', standIn.url);
    if (pathname === '/manage/projects') answerJson(res, 200, [project]);
    else if (req.method === 'GET') {
      const one = known.find(({ id }) => pathname.endsWith(id));
      answerJson(res, 200, one ?? known);
    } else {
      let text = '';
      req.on('data', (piece) => (text += String(piece)));
      req.on('end', () => {
        if (created.names.length === created.failAt) {
          fail(req, res);
          return;
        }
        const { name, like } = JSON.parse(text) as { name?: string; like?: string };
        created.names.push(name);
        created.likes.push(like);
        created.onCreate(created.names.length);
        const id = `2000000${created.names.length}-0000-4000-8000-000000000009`;
        answerJson(res, 201, {
          ...aWireToken({ id, name: name ?? null, project_id: project.id }),
          token: 'sk-wt-made',
        });
      });
    }
  };
  return created;
}

const refused = refuse(400, 'project_inactive', 'cannot generate tokens for inactive project');
