import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type {
  WireAuditRecord,
  WireOperator,
  WireOperatorCreated,
  WireSelf,
  WireToken,
} from '../../daemon/api/contract.js';
import { daemonForEachTest, temporaryFolder } from '../support/daemon.js';
import { commandsAt } from './captured.js';

const SECRET = /sk-op-[0-9A-Za-z]{49}/;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('llmp operator, against a daemon', () => {
  const daemon = daemonForEachTest();
  const { here, json, ids } = commandsAt(daemon);

  const create = (args: string) => json<WireOperatorCreated>(`operator create ${args}`);
  /** Commands of an operator. */
  const as = ({ secret }: WireOperatorCreated) => ({ env: { MANAGEMENT_TOKEN: secret } });

  it('creates an operator with a role, projects, an expiry and ceilings, and shows the secret once', async () => {
    const web = await daemon.createProject({ name: 'web' });
    const shop = await daemon.createProject({ name: 'shop' });
    const { exitCode, out, err } = await here([
      ...'operator create --name ana --role issuer --project-id web --project-id'.split(' '),
      shop.id,
      ...'--expires 90d --max-duration 7d --max-requests 500 --max-active 5 --allow-model gpt-5-mini,claude-*'.split(
        ' ',
      ),
      ...'--rpm 60 --budget-usd 20 --budget-period month --budget-mode hard'.split(' '),
    ]);
    expect(exitCode, err).to.equal(0);
    expect(out).to.match(SECRET);
    expect(err).to.contain('The secret is not shown again. Undo: llmp operator deactivate ');
    const shown = await json<WireOperator>('operator show ana');
    expect(shown).to.deep.include({
      role: 'issuer',
      projects: [web.id, shop.id].sort(),
      ceilings: {
        hours: 168,
        requests: 500,
        active_tokens: 5,
        models: ['gpt-5-mini', 'claude-*'],
        limits: { requests_per_minute: 60 },
        budget: { usd: '20.00', period: 'month', mode: 'hard' },
      },
    });
    expect(Date.parse(shown.expires_at ?? '') - daemon.clock.now()).to.be.closeTo(90 * DAY_MS, 60_000);
    expect(await json<WireOperator>(`operator show ${shown.id.slice(0, 8)}`)).to.deep.equal(shown);
    expect((await here('operator show ana')).out).not.to.match(SECRET);
    const people = await here('operator show ana --no-color', { terminal: 140 });
    expect(people.out).to.contain(
      '168 h, 500 requests, 5 active tokens, models gpt-5-mini, claude-*, 60 requests/min, $20 a month, hard',
    );
    const list = await here('operator list --no-color', { terminal: 140, env: { LANG: 'C.UTF-8' } });
    expect(list.out).to.match(/ana +issuer +● active +2 /);
  });

  it('writes the secret to a file, or prints it alone', async () => {
    const file = join(temporaryFolder(), 'secret');
    const { out, err } = await here(`operator create --name ci --role operator --out ${file} --json`);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readFileSync(file, 'utf8')).to.match(/^sk-op-[0-9A-Za-z]{49}\n$/);
    expect(out + err).not.to.match(SECRET);
    expect((await here('operator create --name bo --role viewer -q')).out).to.match(/^sk-op-[0-9A-Za-z]{49}\n$/);
    expect(await here('operator create --name no --role viewer -o id')).to.include({ exitCode: 2 });
    expect(await json<WireOperator[]>('operator list')).to.have.length(2);
  });

  it('stands in the place of the management token, also in a file, and says who it is', async () => {
    const web = await daemon.createProject({ name: 'web' });
    await daemon.createProject({ name: 'other' });
    const ana = await create('--name ana --role viewer --project-id web');
    expect(await json<WireSelf>('whoami', as(ana))).to.deep.equal({
      actor: 'operator:ana',
      name: 'ana',
      role: 'viewer',
      projects: [web.id],
      ceilings: null,
      expires_at: null,
    });
    const people = await here('whoami --no-color', { ...as(ana), terminal: 100 });
    expect(people.out).to.match(/role +viewer\nprojects +web\nceilings +none\nexpires_at +never/);
    expect((await here('whoami --no-color', { terminal: 100 })).out).to.match(
      /role +everything: this is the management token/,
    );
    const file = join(temporaryFolder(), 'secret');
    await here(`operator create --name file --role auditor --out ${file}`);
    const { role } = await json<WireSelf>('whoami', { env: { MANAGEMENT_TOKEN: '', MANAGEMENT_TOKEN_FILE: file } });
    expect(role).to.equal('auditor');
  });

  it('says in words what a role may not do, and where to look', async () => {
    const ana = await create('--name ana --role viewer');
    const { exitCode, err } = await here('operator list', as(ana));
    expect(exitCode).to.equal(1);
    expect(err).to.equal(
      'llmp: not permitted: the role viewer may not manage access\n  See your role: llmp whoami. The holder of the management token can change it\n',
    );
    const machine = await here('operator list --json', as(ana));
    expect(JSON.parse(machine.err)).to.include({ code: 'not_permitted', exit_code: 1 });
  });

  it('finds what an operator has issued, and done', async () => {
    await daemon.createProject();
    const ana = await create('--name ana --role issuer --max-duration 8h');
    const bo = await create('--name bo --role issuer');
    const beyond = await here('token generate --duration 9h', as(ana));
    expect(beyond.exitCode).to.equal(1);
    expect(beyond.err).to.match(/^llmp: .*hours.*\n {2}Ask for less\. Your ceilings: llmp whoami\n$/);
    await here('token generate --duration 8h -q', as(ana));
    await here('token generate -q', as(bo));
    await here('token generate --name ours -q');
    const ours = await json<WireToken[]>('token list by:management-token');
    expect(ours.map(({ name }) => name)).to.deep.equal(['ours']);
    expect(await ids('token list by:management-token', as(ana))).to.deep.equal([]);
    const [own] = await ids('token list by:ana');
    for (const args of ['by:operator:ana', '--issued-by ana', '--issued-by operator:ana']) {
      expect(await ids(`token list ${args}`), args).to.deep.equal([own]);
    }
    expect(await ids('token list', as(ana))).to.deep.equal([own]);
    // What others have issued does not exist for an issuer.
    expect(await ids('token list by:bo', as(ana))).to.deep.equal([]);
    expect(await here('token list by:robot:x')).to.include({ exitCode: 2 });
    for (const args of ['--actor operator:bo', 'actor:operator:bo']) {
      const records = await json<WireAuditRecord[]>(`audit list ${args}`);
      expect(records.map(({ action, actor }) => [action, actor])).to.deep.equal([['token.create', 'operator:bo']]);
    }
    expect(await here('audit list --actor nobody')).to.include({ exitCode: 2 });
  });

  it('issues tokens with what the ceilings require and the options do not say, and says so', async () => {
    await daemon.createProject();
    const ana = await create(
      '--name ana --role issuer --max-duration 8h --max-requests 500 --allow-route inference --allow-model gpt-5-mini,claude-* --rpm 60 --budget-usd 20 --budget-period month --budget-mode hard',
    );
    const runtime = mkdtempSync(join(tmpdir(), 'llmp-runtime-'));
    const situation = { env: { ...as(ana).env, XDG_RUNTIME_DIR: runtime, PATH: process.env.PATH } };
    const most = {
      max_requests: 500,
      allow: { routes: ['inference'], models: ['gpt-5-mini', 'claude-*'] },
      limits: { requests_per_minute: 60 },
      budget: { usd: '20.00', period: 'month', mode: 'hard' },
    };
    const policies = "--allow-route inference --allow-model 'gpt-5-mini,claude-*' --rpm 60";
    const budget = '--budget-usd 20.00 --budget-period month --budget-mode hard';
    for (const [args, required, hours, terms, stdin] of [
      ['token generate', `--duration 8h --max-requests 500 ${policies} ${budget}`, 8, {}],
      [
        'token generate --rpm 9 --budget-usd 5 --budget-mode hard --allow-route inference --duration 30m',
        "--max-requests 500 --allow-model 'gpt-5-mini,claude-*' --budget-period month",
        0.5,
        { limits: { requests_per_minute: 9 }, budget: { ...most.budget, usd: '5.00' } },
      ],
      ['token print', `--max-requests 500 ${policies} ${budget}`, 1, {}],
      ['run --max-requests 5 -- true', `${policies} ${budget}`, 1, { max_requests: 5 }],
      [
        'token generate --from - --yes',
        `${policies} ${budget}`,
        2,
        { max_requests: 3 },
        'duration,max-requests\n2h,3\n',
      ],
    ] as const) {
      const { exitCode, err } = await here(args, { ...situation, ...(stdin && { stdin }) });
      expect(exitCode, `${args}: ${err}`).to.equal(0);
      expect(err, args).to.contain(`As your ceilings require: ${required}\n`);
      const [token] = await json<WireToken[]>('token list --sort -created_at --limit 1');
      expect(token, args).to.deep.include({ ...most, ...terms });
      expect(Date.parse(token?.expires_at ?? '') - Date.parse(token?.created_at ?? '')).to.equal(hours * HOUR_MS);
      daemon.clock.advance(1000);
    }
    // What is given is never lowered.
    const beyond = await here('run --max-requests 501 -- true', situation);
    expect(beyond.err).to.contain('llmp: beyond your ceiling requests: ');
    expect((await here('token generate -q', situation)).err).to.equal('');
    rmSync(runtime, { recursive: true });
  });

  it('changes what is given, and nothing else', async () => {
    await daemon.createProject({ name: 'web' });
    const ana = await create('--name ana --role viewer --project-id web --expires 7d --max-active 5 --budget-usd 20');
    const { err } = await here('operator update ana --role issuer --max-active 10');
    expect(err).to.contain('Changed ana: issuer of 1 project, until ');
    const budget = { usd: '20.00', period: 'none', mode: 'soft' };
    expect(await json<WireOperator>('operator show ana')).to.deep.include({
      role: 'issuer',
      projects: ana.projects,
      expires_at: ana.expires_at,
      ceilings: { active_tokens: 10, budget },
    });
    const all = await here('operator update ana --all-projects --expires none --max-active none --budget-mode hard');
    expect(all.exitCode, all.err).to.equal(0);
    expect(await json<WireOperator>('operator show ana')).to.deep.include({
      role: 'issuer',
      projects: null,
      expires_at: null,
      ceilings: { budget: { ...budget, mode: 'hard' } },
    });
    await here('operator update ana --budget-usd none');
    expect((await json<WireOperator>('operator show ana')).ceilings).to.equal(null);
    expect(await json<WireSelf>('whoami', as(ana))).to.include({ role: 'issuer' });
  });

  it('is deactivated with its tokens, or without them, and reactivated with the same secret', async () => {
    await daemon.createProject();
    const ana = await create('--name ana --role issuer');
    await here('token generate -q', as(ana));
    await here('token generate -q', as(ana));
    await here('token generate -q');
    const dry = await here('operator deactivate ana -n');
    expect(dry.err).to.match(/Would deactivate \w{8} \(ana\)\./);
    const { exitCode, err } = await here(['operator', 'deactivate', 'ana', '--reason', 'left the team']);
    expect(exitCode).to.equal(0);
    expect(err).to.match(/Deactivated \w{8} \(ana\)\. 2 tokens revoked\. Undo: llmp operator reactivate /);
    expect(await ids('token list --state revoked')).to.have.length(2);
    expect(await here('whoami', as(ana))).to.include({ exitCode: 3 });
    const records = await json<WireAuditRecord[]>('audit list --action operator.deactivate');
    expect(records.map(({ reason }) => reason)).to.deep.equal(['left the team']);

    await here(`operator reactivate ${ana.id}`);
    expect((await json<WireSelf>('whoami', as(ana))).name).to.equal('ana');
    await here('token generate -q', as(ana));
    const kept = await here('operator deactivate ana --keep-tokens');
    expect(kept.err).to.contain('(ana). The tokens stay. Undo:');
    expect(await ids('token list --state active')).to.have.length(2);
  });

  it('is refused before anything is sent if the command line is wrong', async () => {
    for (const [args, why] of [
      ['create --role viewer', 'no operator name given'],
      ['create --name ana', 'no role given'],
      ['create --name ana --role boss', '--role must be one of viewer, auditor, issuer, operator, admin'],
      ['create --name ana --role viewer --expires 0d', '--expires must be a time from now'],
      ['create --name ana --role viewer --max-duration 90m', '--max-duration must be whole hours'],
      ['create --name ana --role viewer --budget-mode hard', 'a budget needs an amount'],
      ['update ana', 'nothing to change'],
      ['update ana --project-id web --all-projects', '--project-id and --all-projects exclude each other'],
      [`update sk-op-${'x'.repeat(49)} --role admin`, 'this is a secret, not an operator name or ID'],
    ] as const) {
      const { exitCode, err } = await here(`operator ${args}`, { env: { LLMP_SERVER: 'http://127.0.0.1:9' } });
      expect(exitCode, args).to.equal(2);
      expect(err, args).to.contain(why);
    }
    expect((await here('operator show nobody')).exitCode).to.equal(4);
  });
});
