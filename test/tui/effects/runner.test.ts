/** The effects of the terminal UI, against a real daemon. */
import { expect } from 'chai';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import type { WireProject } from '../../../daemon/api/contract.js';
import { type Connected, Runner } from '../../../tui/effects/runner.js';
import type { Action, ChangeRequest, Effect, TokenHistory } from '../../../tui/state/exchange.js';
import type { ExportedList } from '../../../tui/state/exported-list.js';
import { NOTHING_SAVED, type SavedChange, type SavedView, withSavedChange } from '../../../tui/state/saved.js';
import { Secret } from '../../../tui/state/secret.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../../support/daemon.js';
import { canary } from '../../support/canaries.js';
import { json, startProvider } from '../../support/provider.js';
import { eventually } from '../../support/eventually.js';

describe('effects of the terminal UI', () => {
  let daemon: TestDaemon;
  let project: WireProject;
  let actions: Action[];
  let runner: Runner;
  /** Requests in flight, and their maximum so far. */
  let asking: {
    urls: string[];
    now: number;
    most: number;
    isAway: boolean;
    losesResponses: boolean;
    hold: Promise<void> | null;
  };

  const observed: typeof fetch = async (url, init) => {
    asking.urls.push(`${init?.method ?? 'GET'} ${new URL(url).pathname}`);
    asking.most = Math.max(asking.most, ++asking.now);
    try {
      await asking.hold;
      if (asking.isAway) throw Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } });
      const response = await fetch(url, init);
      if (asking.losesResponses) throw new TypeError('terminated');
      return response;
    } finally {
      asking.now--;
    }
  };
  /** What is stored for each context, and how long storing takes. */
  const files = new Map<string | null, typeof NOTHING_SAVED>();
  let storing: Promise<unknown> = Promise.resolve();
  async function stored({ context }: Connected['target'], change: SavedChange) {
    await storing;
    if (context === 'full') throw new Error('ENOSPC');
    files.set(context, withSavedChange(files.get(context) ?? NOTHING_SAVED, change));
    return files.get(context)!;
  }
  const connected = (name: string, isReadonly = false): Connected => ({
    target: { server: name, context: name, color: null, isProtected: false, isReadonly, project: null },
    saved: NOTHING_SAVED,
    client: { server: daemon.url, managementToken: MANAGEMENT_TOKEN, fetch: observed, timeoutMs: 10_000 },
  });
  function begin(first = connected('here')): void {
    runner = new Runner(
      {
        act: (action) => actions.push(action),
        connect: (context) =>
          context === 'nowhere' ? Promise.reject(new Error('no such place')) : Promise.resolve(connected(context)),
        contexts: () => Promise.resolve([]),
        terminal: {
          copy: (text) => Promise.resolve(text.length < 100 ? 'terminal' : null),
          suspend: () => undefined,
          repaint: () => undefined,
        },
        save: (target, change) => stored(target, change),
        remember: () => undefined,
        quit: () => undefined,
      },
      first,
    );
  }
  /** Waits for the first action of a kind. */
  async function told<K extends Action['on']>(on: K): Promise<Extract<Action, { on: K }>> {
    const found = () => actions.find((action): action is Extract<Action, { on: K }> => action.on === on);
    await eventually(`it is told of ${on}`, () => found() !== undefined);
    return found()!;
  }
  const run = (...effects: Effect[]) => {
    for (const effect of effects) runner.run(effect);
  };
  /** Holds back requests. @returns a function that releases them. */
  function holds(): () => void {
    let release: () => void = () => undefined;
    asking.hold = new Promise((resolve) => (release = resolve));
    return release;
  }
  const change = (what: ChangeRequest, reason: string | null = null): Effect => ({
    do: 'change',
    change: what,
    reason,
  });
  const tokens = async (count: number) => {
    const all = [];
    for (let n = 0; n < count; n++) all.push(await daemon.createToken(project.id, { name: `token ${n}` }));
    return all.map(({ id, name }) => ({ id, name }));
  };

  beforeEach(async () => {
    daemon = await startDaemon();
    project = await daemon.createProject();
    actions = [];
    asking = { urls: [], now: 0, most: 0, isAway: false, losesResponses: false, hold: null };
    begin();
  });
  afterEach(async () => {
    runner.end();
    await daemon.stop();
  });

  describe('a data request', () => {
    it('is not sent again while it is in flight', async () => {
      run({ do: 'load', request: { of: 'status' } }, { do: 'load', request: { of: 'status' } });
      await told('loaded');
      expect(asking.urls).to.deep.equal(['GET /manage/status']);
      run({ do: 'load', request: { of: 'status' } });
      await eventually('it is asked again', () => asking.urls.length === 2);
    });

    it('reports why there is no response', async () => {
      asking.isAway = true;
      run({ do: 'load', request: { of: 'projects' } });
      const { failure, request } = await told('failed');
      expect(request).to.deep.equal({ of: 'projects' });
      expect(failure).to.include({ kind: 'unreachable', status: null });
      expect(failure.message).to.contain('ECONNREFUSED');
    });

    it('reports the error of a response', async () => {
      run({ do: 'load', request: { of: 'token', id: 'nobody' } });
      expect((await told('failed')).failure).to.include({ kind: 'refused', status: 404, message: 'token not found' });
    });

    it('for the history of a token finds its changes and its creation after days of use (finding A7)', async () => {
      const { id, token: secret } = await daemon.createToken(project.id, { duration_hours: 500 });
      for (const isActive of [false, true, false])
        await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: isActive });
      // One record per hour: more than a page of records of all kinds.
      for (let hour = 0; hour < 60; hour++) {
        daemon.clock.advance(3_600_000);
        await daemon.call(secret);
      }
      await eventually('its uses are recorded', async () => {
        await daemon.daemon.usage.flush();
        const listed = await daemon.manage('GET', `/manage/audit?token_id=${id}&limit=1000`);
        return (listed.body as unknown[]).length >= 60;
      });
      run({ do: 'load', request: { of: 'tokenAudit', id } });
      const { request, data } = await told('loaded');
      expect(request.of).to.equal('tokenAudit');
      const { changes, isTruncated, lastUse } = data as TokenHistory;
      const revoked = ['token.revoke', 'token.reactivate', 'token.revoke'];
      expect(changes.map(({ action }) => action)).to.deep.equal([...revoked, 'token.create']);
      expect(isTruncated).to.equal(false);
      expect(lastUse?.action).to.equal('token.use');
    });

    it('for all tokens of a filter loads all pages', async () => {
      await tokens(3);
      run({ do: 'load', request: { of: 'allTokens', query: { q: 'token' }, as: 'marks' } });
      const { data } = await told('loaded');
      expect(data).to.have.length(3);
    });

    it('reports the difference of the clocks', async () => {
      run({ do: 'load', request: { of: 'status' } });
      expect((await told('heard')).skewMs).to.be.a('number');
    });
  });

  describe('a change', () => {
    it('of many tokens sends eight requests at a time with the reason, and reports the changed tokens', async () => {
      const all = await tokens(20);
      run(change({ what: 'revoke', tokens: all }, 'a leak'));
      const { outcome } = await told('changed');
      expect(outcome).to.deep.include({ done: 20, failures: [] });
      expect(outcome.doneIds).to.have.members(all.map(({ id }) => id));
      expect(asking.most).to.equal(8);
      const data = await daemon.manage('GET', '/manage/audit?action=token.revoke&limit=1');
      expect(data.body)
        .to.have.length(1)
        .and.to.have.nested.property('[0]')
        .that.includes({ actor: 'tui', reason: 'a leak' });
    });

    it('is undone by its batch, also if the response to the undo is lost', async () => {
      const all = await tokens(3);
      run(change({ what: 'revoke', tokens: all }));
      const { batch = '' } = (await told('changed')).outcome;
      await daemon.manage('PATCH', `/manage/tokens/${all[1]!.id}`, { is_active: false });
      const undo = change({ what: 'undo', batch, as: null, title: '' });
      asking.losesResponses = true;
      run(undo);
      expect((await told('refused')).failure.kind).to.equal('unreachable');
      expect((await daemon.token(all[0]!.id)).is_active).to.equal(true);
      asking.losesResponses = false;
      actions = [];
      run(undo);
      const { outcome } = await told('changed');
      expect(outcome)
        .to.include({ done: 2 })
        .and.to.have.property('doneIds')
        .that.has.members([all[0]!.id, all[2]!.id]);
      expect(outcome.skipped).to.deep.equal([
        { project_id: project.id, token_id: all[1]!.id, reason: 'changed_since', message: null },
      ]);
      expect(outcome.batch).not.to.equal(batch);
    });

    it('is not made if somebody has changed what was shown', async () => {
      const { id } = await daemon.createToken(project.id);
      await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: false });
      const [shown, before] = [await daemon.token(id), project];
      daemon.clock.advance(1_000);
      await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: true });
      await daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: false });
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { missing_usage: 'inject' });
      for (const what of [
        { what: 'reactivate', tokens: [shown] },
        { what: 'update-project', project: before, body: { name: 'mine' } },
      ] as const) {
        actions = [];
        run(change(what));
        expect((await told('refused')).failure).to.include({ status: 412, code: 'precondition_failed' });
      }
      actions = [];
      run(change({ what: 'reactivate', tokens: [await daemon.token(id)] }));
      expect((await told('changed')).outcome.done).to.equal(1);
    });

    it('of many tokens reports the tokens that failed, and changes the others', async () => {
      const all = await tokens(3);
      run(change({ what: 'revoke', tokens: [all[0]!, { id: 'nobody', name: 'gone' }, ...all.slice(1)] }));
      const { outcome } = await told('changed');
      expect(outcome.done).to.equal(3);
      expect(outcome.failures.map(({ of, failure }) => [of.name, failure.status])).to.deep.equal([['gone', 404]]);
    });

    it('of many tokens can be stopped', async () => {
      const all = await tokens(20);
      const release = holds();
      run(change({ what: 'revoke', tokens: all }));
      await eventually('eight are on their way', () => asking.now === 8);
      run({ do: 'stop' });
      release();
      const { outcome } = await told('changed');
      expect(outcome.done).to.equal(8);
      expect(asking.urls.filter((url) => url.startsWith('PATCH'))).to.have.length(8);
    });

    it('of many tokens stops when the daemon is unreachable', async () => {
      const all = await tokens(30);
      asking.isAway = true;
      run(change({ what: 'revoke', tokens: all }));
      const { outcome } = await told('changed');
      expect(outcome.done).to.equal(0);
      expect(outcome.failures.length).to.be.within(1, 8);
    });

    it('of one token reports a refusal', async () => {
      run(change({ what: 'reactivate', tokens: [{ id: 'nobody', name: null }] }));
      expect((await told('refused')).failure.status).to.equal(404);
    });

    it('that creates a token wraps the secret', async () => {
      run(change({ what: 'create-token', body: { project_id: project.id, name: 'new' } }));
      const action = await told('changed');
      const secret = action.outcome.created?.secret;
      expect(secret?.reveal()).to.match(/^sk-wt-/);
      expect(JSON.stringify(action) + inspect(action, { depth: 9 })).not.to.contain(secret?.reveal());
    });

    it('that replaces a key has the provider check it, and reports the result', async () => {
      const provider = await startProvider();
      const checking = await startDaemon({ upstream: provider.url });
      const { id, name } = await checking.createProject();
      const here = connected('here');
      runner.end();
      begin({ ...here, client: { ...here.client, server: checking.url } });
      const key = canary('upstream');
      const result = async (status: number) => {
        provider.answer = (_req, res) => {
          json(res, status, { error: key });
        };
        actions.length = 0;
        run(
          change({
            what: 'update-project',
            project: { id, name },
            body: {},
            key: { secret: new Secret(key), isToCheck: true },
          }),
        );
        await eventually('a result', () => actions.some(({ on }) => on === 'changed' || on === 'refused'));
        expect(JSON.stringify(actions)).not.to.contain(key);
        return actions.find(({ on }) => on === 'changed' || on === 'refused');
      };
      expect(await result(200)).to.have.nested.property('outcome.keyCheck', 'accepted');
      expect(await result(404)).to.have.nested.property('outcome.keyCheck', 'not_confirmed');
      expect(await result(401)).to.have.nested.property('failure.code', 'key_refused');
      expect(await result(500)).to.have.nested.property('failure.code', 'key_not_checked');

      provider.answer = () => undefined;
      const asked = provider.received.length;
      actions.length = 0;
      run(change({ what: 'create-project', name: 'new', key: { secret: new Secret(key), isToCheck: true } }));
      await eventually('the provider has the request', () => provider.received.length > asked);
      run({ do: 'stop' });
      await eventually('the daemon has cancelled it', () => provider.received[asked]?.wasAborted === true);
      const listed = await checking.manage('GET', '/manage/projects');
      expect(JSON.stringify(listed.body), 'nothing is stored').to.contain(name).and.not.to.contain('"new"');
      expect(actions, 'nobody waits for the result').to.deep.equal([]);
      await checking.stop();
      await provider.stop();
    });

    it('sends nothing in a read-only context', async () => {
      const [token] = await tokens(1);
      begin(connected('shown', true));
      run(change({ what: 'revoke', tokens: [token!] }));
      expect((await told('refused')).failure.message).to.contain('read-only');
      expect(asking.urls).to.be.empty;
    });
  });

  describe('a stream', () => {
    it('is followed until another one is requested', async () => {
      run({ do: 'follow', streams: [{ of: 'audit', query: {} }] });
      await told('stream');
      const { id } = await daemon.createToken(project.id);
      const { streamed } = await told('streamed');
      expect(streamed[0]).to.have.nested.property('item.token_id', id);
      run({ do: 'follow', streams: [{ of: 'audit', query: { action: 'token.revoke' } }] });
      await eventually('the other is open', () => actions.filter(({ on }) => on === 'stream').length === 2);
      actions = [];
      await daemon.createToken(project.id);
      await daemon.manage('DELETE', `/manage/tokens/${id}`);
      const heard = (await told('streamed')).streamed.map(({ item }) => ('action' in item ? item.action : ''));
      expect(heard).to.deep.equal(['token.revoke']);
    });

    it('of a token begins with its requests of the last minute', async () => {
      const { id, token } = await daemon.createToken(project.id);
      const request = await daemon.call(token);
      await request.arrayBuffer();
      run({ do: 'follow', streams: [{ of: 'tokenEvents', id, since: '1m' }] });
      const used = () =>
        actions
          .flatMap((action) => (action.on === 'streamed' ? action.streamed : []))
          .find(({ of, item }) => of === 'tokenEvents' && 'kind' in item && item.kind === 'request.completed');
      await eventually('the request is there', () => used() !== undefined);
      expect(used()).to.nested.include({ 'item.token_id': id, 'item.status': request.status });
    });
  });

  describe('another context', () => {
    it('is connected to, and late responses of the previous daemon are ignored', async () => {
      const release = holds();
      run({ do: 'load', request: { of: 'status' } }, { do: 'connect', context: 'there' });
      expect((await told('connected')).target.context).to.equal('there');
      asking.hold = null;
      release();
      run({ do: 'load', request: { of: 'projects' } });
      await told('loaded');
      expect(actions.filter(({ on }) => on === 'loaded' || on === 'failed')).to.have.length(1);
    });

    it('that cannot be resolved changes nothing', async () => {
      run({ do: 'connect', context: 'nowhere' });
      expect((await told('notConnected')).context).to.equal('nowhere');
      run({ do: 'load', request: { of: 'status' } });
      await told('loaded');
    });
  });

  describe('a secret', () => {
    const secret = () => new Secret(`sk-test-${'0'.repeat(20)}`);

    it('is written to a new file that only the user can read, never to an existing one', async () => {
      const path = join(temporaryFolder(), 'token.txt');
      run({ do: 'write', secret: secret(), path });
      expect((await told('written')).path).to.equal(path);
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      expect(readFileSync(path, 'utf8')).to.equal(`${secret().reveal()}\n`);
      run({ do: 'write', secret: secret(), path });
      expect(await told('notWritten')).to.deep.include({ path, why: 'the file already exists' });
    });

    it('that is too long for the clipboard is reported as not copied', async () => {
      run({ do: 'copy', text: secret(), what: 'The secret' });
      run({ do: 'copy', text: 'x'.repeat(200), what: 'The ids' });
      await eventually('both are told', () => actions.length === 2);
      expect(actions).to.deep.equal([
        { on: 'copied', what: 'The secret', to: 'terminal' },
        { on: 'notCopied', what: 'The ids' },
      ]);
    });
  });

  describe('issuing several tokens again', () => {
    it('writes their secrets to a new file that only the user can read', async () => {
      const path = join(temporaryFolder(), 'secrets.csv');
      const old = await tokens(3);
      run(change({ what: 'issue-again', tokens: old, path }, 'lost'));
      const { outcome } = await told('changed');
      expect(outcome).to.deep.include({ done: 3, doneIds: old.map(({ id }) => id), failures: [], path });
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      const lines = readFileSync(path, 'utf8').trimEnd().split('\r\n');
      expect(lines).to.have.length(4);
      expect(lines[0]).to.equal('id,token,name,project_id,project_name,expires_at,max_requests,like');
      for (const [at, { id, name }] of old.entries())
        expect(lines[at + 1]).to.match(new RegExp(`,sk-wt-\\w{49},"?${name}"?,.*,${id}$`));
      expect(inspect(actions)).not.to.match(/sk-wt-\w{49}/);
    });

    it('issues none if there is such a file', async () => {
      const path = join(temporaryFolder(), 'secrets.csv');
      writeFileSync(path, 'precious');
      run(change({ what: 'issue-again', tokens: await tokens(2), path }));
      const { failure } = await told('refused');
      expect(failure).to.include({ kind: 'refused', code: 'file_not_created', message: 'The file already exists' });
      expect(readFileSync(path, 'utf8')).to.equal('precious');
      expect(asking.urls).to.be.empty;
    });

    it('keeps those that were issued when others fail, and leaves no file without any', async () => {
      const path = join(temporaryFolder(), 'secrets.json');
      const [one, ...others] = await tokens(2);
      const unknown = { id: '00000000-0000-4000-8000-000000000000', name: 'gone' };
      run(change({ what: 'issue-again', tokens: [one!, unknown, ...others], path }));
      const { outcome } = await told('changed');
      expect([outcome.done, outcome.failures.map(({ of }) => of.name)]).to.deep.equal([2, ['gone']]);
      expect(JSON.parse(readFileSync(path, 'utf8'))).to.have.length(2);
      const other = join(temporaryFolder(), 'secrets.json');
      actions.length = 0;
      run(change({ what: 'issue-again', tokens: [unknown], path: other }));
      expect((await told('changed')).outcome)
        .to.include({ done: 0 })
        .and.not.to.have.property('path');
      expect(existsSync(other)).to.equal(false);
    });
  });

  describe('an export', () => {
    const list = (more: Partial<ExportedList> = {}): ExportedList => ({
      screen: 'tokens',
      path: join(temporaryFolder(), 'list.csv'),
      format: 'csv',
      replaces: false,
      columns: ['id', 'name', 'requests', 'last_used', 'expires', 'secret'],
      source: { query: { sort: 'name' } },
      filter: '',
      top: { by: 'token', period: '1h' },
      nowMs: 0,
      ...more,
    });

    it('has all pages of a list, with whole values and no secret', async function () {
      this.timeout(60_000);
      const [first] = await tokens(1);
      for (let made = 1; made < 1_001; made += 50)
        await Promise.all(Array.from({ length: 50 }, () => daemon.createToken(project.id, { name: 'x' })));
      const given = list();
      run({ do: 'export', list: given });
      expect(await told('exported')).to.include({ count: 1_001, isCut: false });
      const [titles, ...rows] = readFileSync(given.path, 'utf8').trimEnd().split('\r\n');
      expect(titles).to.equal('id,name,requests,last_used,expires,secret');
      expect(rows).to.have.length(1_001);
      expect(rows[0]).to.match(
        new RegExp(`^${first!.id},"token 0","0 of unlimited",,\\d{4}-[\\d:.TZ-]+,sk-wt-\\w{4}…\\w{4}$`),
      );
      expect(statSync(given.path).mode & 0o777).to.equal(0o600);
    });

    it('has numbers and objects in JSON', async () => {
      await tokens(1);
      const given = list({ format: 'json', columns: ['name', 'requests', 'used'] });
      run({ do: 'export', list: given });
      await told('exported');
      expect(JSON.parse(readFileSync(given.path, 'utf8'))).to.deep.equal([
        { name: 'token 0', requests: { used: 0, cap: null }, used: null },
      ]);
    });

    it('has the records of the audit log, and the events that the filter matches', async () => {
      await tokens(2);
      const audit = list({ screen: 'audit', columns: ['action'], source: { query: { action: 'token.create' } } });
      run({ do: 'export', list: audit });
      expect(await told('exported')).to.include({ count: 2 });
      expect(readFileSync(audit.path, 'utf8')).to.equal('action\r\ntoken.create\r\ntoken.create\r\n');
      actions.length = 0;
      const events = list({ screen: 'events', columns: ['request'], source: { query: {} }, filter: '"token 1"' });
      run({ do: 'export', list: events });
      expect(await told('exported')).to.include({ count: 1 });
    });

    it('replaces a file only if that is confirmed, and only by a complete one', async () => {
      const path = join(temporaryFolder(), 'list.csv');
      writeFileSync(path, 'precious');
      run({ do: 'export', list: list({ path }) });
      expect((await told('notExported')).why).to.equal(null);
      actions.length = 0;
      asking.isAway = true;
      run({ do: 'export', list: list({ path, replaces: true }) });
      expect((await told('notExported')).why).to.match(/ECONNREFUSED|fetch failed|cannot reach/);
      expect(readFileSync(path, 'utf8')).to.equal('precious');
      expect(readdirSync(dirname(path))).to.deep.equal(['list.csv']);
      asking.isAway = false;
      actions.length = 0;
      run({ do: 'export', list: list({ path, replaces: true }) });
      await told('exported');
      expect(readFileSync(path, 'utf8')).to.match(/^id,name/);
    });

    it('says why it cannot write', async () => {
      run({ do: 'export', list: list({ path: join(temporaryFolder(), 'missing', 'list.csv') }) });
      expect((await told('notExported')).why).to.equal('ENOENT');
    });
  });

  it('lists the files of a folder, and none of one that it cannot read', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'b.csv'), '');
    mkdirSync(join(folder, 'a'));
    run({ do: 'load', request: { of: 'files', folder: `${folder}/` } });
    expect((await told('loaded')).data).to.deep.equal([
      { name: 'a', isFolder: true },
      { name: 'b.csv', isFolder: false },
    ]);
    actions.length = 0;
    run({ do: 'load', request: { of: 'files', folder: `${folder}/missing/` } });
    expect((await told('loaded')).data).to.deep.equal([]);
  });

  it('has one pending timer per name', async () => {
    run({ do: 'wake', name: 'filter', afterMs: 60_000 }, { do: 'wake', name: 'filter', afterMs: 1 });
    run({ do: 'wake', name: 'second', afterMs: 1 });
    await eventually('both are told', () => actions.length === 2);
    expect(actions).to.have.deep.members([
      { on: 'woke', name: 'filter' },
      { on: 'woke', name: 'second' },
    ]);
  });

  describe('saved views', () => {
    const change = (name: string): SavedChange => ({
      what: 'view',
      view: { name, screen: 'tokens', filter: name, sort: null, columns: null } satisfies SavedView,
    });
    const names = (on: Extract<Action, { on: 'saved' }>) => on.saved.views.map(({ name }) => name);

    it('are stored one after the other, for the context in use', async () => {
      begin();
      run({ do: 'save', change: change('one') }, { do: 'save', change: change('two') });
      await runner.saved();
      expect(actions.flatMap((action) => (action.on === 'saved' ? [names(action)] : []))).to.deep.equal([
        ['one'],
        ['one', 'two'],
      ]);
    });

    it('of a context that is left are stored, and do not appear in the next one', async () => {
      begin(connected('left'));
      let release: () => void = () => undefined;
      storing = new Promise<void>((resolve) => (release = resolve));
      run({ do: 'save', change: change('late') }, { do: 'connect', context: 'there' });
      await told('connected');
      release();
      await runner.saved();
      expect(files.get('left')?.views).to.have.length(1);
      expect(actions.some(({ on }) => on === 'saved')).to.equal(false);
    });

    it('that cannot be stored are reported', async () => {
      begin(connected('full'));
      run({ do: 'save', change: change('one') });
      expect((await told('notSaved')).failure.message).to.contain('ENOSPC');
    });
  });
});
