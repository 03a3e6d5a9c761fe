/** Batches: the changes of one command or dialog, in the audit log, and their undo. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { loadSettings } from '../../../config/settings.js';
import type {
  WireAuditRecord,
  WireBatchUndone,
  WireProject,
  WireToken,
  WireTokenCreated,
} from '../../../daemon/api/contract.js';
import { MAX_UNDONE } from '../../../daemon/api/vocabulary.js';
import { auditRecord, SYSTEM_CALLER } from '../../../daemon/core/audit.js';
import { canary } from '../../support/canaries.js';
import { daemonForEachTest, MANAGEMENT_TOKEN } from '../../support/daemon.js';
import { bodyOf, pagesOf, problemOf } from '../../support/management.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

describe('a batch of changes', () => {
  const daemon = daemonForEachTest();
  let project: WireProject;
  beforeEach(async () => {
    project = await daemon.createProject();
  });

  const tokens = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => daemon.createToken(project.id, { name: `t${at}` })));
  const set = (id: string, active: boolean, batch?: string) =>
    bodyOf<WireToken>(
      daemon.manage('PATCH', `/manage/tokens/${id}`, { is_active: active }, batch ? { 'x-audit-batch': batch } : {}),
    );
  async function revoked(these: readonly { id: string }[]): Promise<string> {
    const batch = randomUUID();
    for (const { id } of these) await set(id, false, batch);
    return batch;
  }
  const undo = (batch: string, as?: string, body?: object) =>
    bodyOf<WireBatchUndone>(
      daemon.manage('POST', `/manage/batches/${batch}/undo`, body ?? {}, as ? { 'x-audit-batch': as } : {}),
    );
  const areActive = (these: readonly { id: string }[]) =>
    Promise.all(these.map(async ({ id }) => (await daemon.token(id)).is_active));
  const list = (query: string) => bodyOf<WireAuditRecord[]>(daemon.manage('GET', `/manage/audit?${query}`));
  const idsOf = ({ undone }: WireBatchUndone) => undone.map(({ token_id }) => token_id);
  const reasons = ({ skipped }: WireBatchUndone) => skipped.map(({ token_id, reason }) => [token_id, reason]);
  const patch = (id: string, body: object, batch?: string) =>
    bodyOf<WireProject>(
      daemon.manage('PATCH', `/manage/projects/${id}`, body, batch ? { 'x-audit-batch': batch } : {}),
    );

  /** Does `then` each time after the undo has read what to change, and before it changes it. */
  function afterReads(then: () => unknown): void {
    const { records } = daemon.daemon.stores;
    const read = records.recordsSince.bind(records);
    records.recordsSince = async (...given) => {
      const found = await read(...given);
      await then();
      return found;
    };
  }

  it('is undone as a whole, each change with its own record, and the undo as well', async () => {
    const all = await tokens(3);
    const batch = await revoked(all);
    const undone = await undo(batch);
    expect(idsOf(undone)).to.deep.equal(all.map(({ id }) => id));
    expect(undone).to.include({ next: null }).and.to.deep.include({ skipped: [] });
    expect(await areActive(all)).to.deep.equal([true, true, true]);

    const records = await list(`batch=${undone.batch}`);
    expect(records).to.have.length(3);
    for (const record of records) {
      expect(record).to.include({ action: 'token.reactivate', outcome: 'success', undo_of: batch });
      expect(record.details).to.deep.equal({ is_active: [false, true] });
    }

    const redone = await undo(undone.batch);
    expect(idsOf(redone)).to.have.length(3);
    expect(await areActive(all)).to.deep.equal([false, false, false]);
    expect((await undo(redone.batch)).undone).to.have.length(3);
    expect(await areActive(all)).to.deep.equal([true, true, true]);
  });

  it('leaves what somebody has changed again since, whatever the state is now', async () => {
    const [untouched, again, back, forth, ofAll] = (await tokens(5)) as [
      WireTokenCreated,
      WireTokenCreated,
      WireTokenCreated,
      WireTokenCreated,
      WireTokenCreated,
    ];
    const batch = await revoked([untouched, again, back, forth]);
    await set(again.id, false); // Revoked already, but now somebody else wants it so, too.
    await set(back.id, true);
    await set(forth.id, true);
    await set(forth.id, false);
    const undone = await undo(batch);
    expect(idsOf(undone)).to.deep.equal([untouched.id]);
    expect(reasons(undone)).to.deep.equal([again, back, forth].map(({ id }) => [id, 'changed_since']));
    expect(await areActive([untouched, again, back, forth])).to.deep.equal([true, false, true, false]);

    const second = await revoked([ofAll]);
    await bodyOf(daemon.manage('POST', `/manage/projects/${project.id}/tokens/revoke`));
    expect(reasons(await undo(second))).to.deep.equal([[ofAll.id, 'changed_since']]);
  });

  it('leaves a token that is revoked by somebody else at the same moment', async () => {
    const all = await tokens(8);
    const batch = await revoked(all);
    const [undone] = await Promise.all([undo(batch), ...all.map(({ id }) => set(id, false))]);
    const done = new Set(idsOf(undone));
    expect(done.size + undone.skipped.length).to.equal(8);
    // A revocation after the undo has revoked it again; one before has prevented the undo. So nothing is active.
    expect(await areActive(all)).not.to.include(true);
  });

  it('leaves a token that is revoked between the decision and the change', async () => {
    const [token] = (await tokens(1)) as [WireTokenCreated];
    const batch = await revoked([token]);
    afterReads(() => set(token.id, false));
    expect(reasons(await undo(batch))).to.deep.equal([[token.id, 'changed_since']]);
    expect(await areActive([token])).to.deep.equal([false]);
  });

  it('is undone once, and a request whose response was lost can be repeated', async () => {
    const all = await tokens(2);
    const batch = await revoked(all);
    const as = randomUUID();
    const first = await undo(batch, as);
    expect(first.batch).to.equal(as);
    const records = await list('limit=1000');
    expect(await undo(batch, as)).to.deep.equal(first);
    // Even if something has changed since.
    await set(all[0]!.id, false);
    expect(await undo(batch, as)).to.deep.equal(first);
    expect(await areActive(all)).to.deep.equal([false, true]);
    expect(reasons(await undo(batch))).to.deep.equal(all.map(({ id }) => [id, 'undone_before']));
    expect(await list('limit=1000')).to.have.length(records.length + 1);
    const both = await Promise.all([undo(as, UNKNOWN), undo(as, UNKNOWN)]);
    expect(both[0]).to.deep.equal(both[1]);
  });

  it('leaves what it has not changed, what has expired, and what does not exist any more', async () => {
    const [before, expired, kept] = (await tokens(3)) as [WireTokenCreated, WireTokenCreated, WireTokenCreated];
    const short = await daemon.createToken(project.id, { duration_minutes: 1 });
    await set(before.id, false);
    const batch = await revoked([before, short, expired, kept]);
    daemon.clock.advance(120_000);
    await daemon.daemon.stores.database.transact((tx) =>
      tx.execute('DELETE FROM tokens WHERE id = $id', { id: expired.id }),
    );
    const undone = await undo(batch);
    expect(idsOf(undone)).to.deep.equal([kept.id]);
    expect(reasons(undone)).to.deep.equal([
      [before.id, 'unchanged'],
      [short.id, 'expired'],
      [expired.id, 'gone'],
    ]);
  });

  it('counts a change that was sent twice once', async () => {
    const [token] = (await tokens(1)) as [WireTokenCreated];
    const batch = await revoked([token, token]);
    expect(idsOf(await undo(batch))).to.deep.equal([token.id]);
    expect(await areActive([token])).to.deep.equal([true]);
  });

  it('revokes the tokens that it has created', async () => {
    const batch = randomUUID();
    const created = await bodyOf<WireTokenCreated>(
      daemon.manage('POST', '/manage/tokens', { project_id: project.id }, { 'x-audit-batch': batch }),
      201,
    );
    const undone = await undo(batch);
    expect(await areActive([created])).to.deep.equal([false]);
    await undo(undone.batch);
    expect(await areActive([created])).to.deep.equal([true]);
  });

  it('restores the fields of a project that it has changed, and no others', async () => {
    const batch = randomUUID();
    await patch(project.id, { name: 'two', missing_usage: 'inject' }, batch);
    await patch(project.id, { name: 'three' }, batch);
    await patch(project.id, { is_active: false }); // Somebody else: another field.
    const undone = await undo(batch);
    expect(undone.undone).to.deep.equal([{ project_id: project.id, token_id: null }]);
    const now = await bodyOf<WireProject>(daemon.manage('GET', `/manage/projects/${project.id}`));
    expect(now).to.include({ name: project.name, missing_usage: 'off', is_active: false });

    await patch(project.id, { name: 'four' });
    expect((await undo(undone.batch)).skipped).to.have.deep.members([
      { project_id: project.id, token_id: null, reason: 'changed_since', message: null },
    ]);
  });

  it('does not restore a name that is taken, a host that is not allowed any more, or a key', async () => {
    const [renamed, moved, keyed] = [randomUUID(), randomUUID(), randomUUID()];
    await patch(project.id, { name: 'other' }, renamed);
    await daemon.createProject({ name: project.name });
    const { skipped } = await undo(renamed);
    expect(skipped).to.have.length(1);
    expect(skipped[0]).to.include({ reason: 'refused', message: 'a project of this name exists already' });

    const key = { api_key: canary('upstream') };
    await patch(project.id, { upstream_base_url: 'http://127.0.0.1:9/a', ...key });
    await patch(project.id, { upstream_base_url: null, ...key }, keyed);
    expect((await undo(keyed)).skipped[0]).to.include({ reason: 'irreversible' });
    await patch(project.id, { upstream_base_url: 'http://127.0.0.1:8/a', ...key });
    await patch(project.id, { upstream_base_url: 'http://127.0.0.1:8/b' }, moved);
    const env = { MANAGEMENT_TOKEN, UPSTREAM_ALLOWED_HOSTS: 'api.openai.com' };
    daemon.daemon.apply(loadSettings(env).reloadable);
    expect((await undo(moved)).skipped[0]).to.deep.include({ reason: 'refused' });
    daemon.daemon.apply(loadSettings({ MANAGEMENT_TOKEN }).reloadable);
    expect((await undo(moved)).undone).to.have.length(1);
  });

  it('that revoked all tokens of a project, or purged the cache, cannot be undone', async () => {
    const batch = randomUUID();
    const headers = { 'x-audit-batch': batch };
    await bodyOf(daemon.manage('POST', `/manage/projects/${project.id}/tokens/revoke`, undefined, headers));
    await bodyOf(daemon.manage('POST', '/manage/cache/purge', { all: true }, headers));
    const { skipped } = await undo(batch);
    expect(skipped.map(({ reason }) => reason)).to.deep.equal(['irreversible', 'irreversible']);
  });

  it('is undone in parts if it is large', async () => {
    const batch = randomUUID();
    await daemon.daemon.stores.records.change(async (tx) => {
      for (let made = 0; made <= MAX_UNDONE; made++) {
        // Nothing to undo, so that it takes no time.
        const subject = { action: 'cache.purge', projectId: null, tokenId: randomUUID() } as const;
        await tx.record(auditRecord(subject, { ...SYSTEM_CALLER, batch }, 'success', 0));
      }
    });
    const first = await undo(batch);
    expect(first.skipped).to.have.length(MAX_UNDONE);
    const rest = await undo(batch, first.batch, { cursor: first.next });
    expect(rest).to.include({ batch: first.batch, next: null });
    expect(rest.skipped.map(({ reason }) => reason)).to.deep.equal(['irreversible']);
  });

  it('is undone for a limited time, and then continued', async () => {
    const all = await tokens(4);
    const batch = await revoked(all);
    afterReads(() => {
      daemon.clock.advance(3_000);
    });
    const first = await undo(batch);
    expect(first.undone).to.have.length(2);
    expect(first.next).not.to.equal(null);
    const rest = await undo(batch, first.batch, { cursor: first.next });
    expect(rest.undone).to.have.length(2);
    expect(await areActive(all)).not.to.include(false);
  });

  it('is undone further by each request, also if its members are found late', async () => {
    const all = await tokens(2);
    const batch = await revoked(all);
    const { records } = daemon.daemon.stores;
    const find = records.batchMembers.bind(records);
    records.batchMembers = async (...given) => {
      const found = await find(...given);
      daemon.clock.advance(6_000);
      return found;
    };
    const first = await undo(batch);
    expect(first.undone).to.have.length(1);
    const rest = await undo(batch, first.batch, { cursor: first.next });
    expect(rest).to.deep.include({ next: null });
    expect(await areActive(all)).not.to.include(false);
  });

  it('needs valid IDs', async () => {
    problemOf(await daemon.manage('POST', `/manage/batches/${UNKNOWN}/undo`, {}), 404, 'not_found');
    problemOf(await daemon.manage('POST', '/manage/batches/nonsense/undo', {}), 404, 'not_found');
    const [token] = (await tokens(1)) as [WireTokenCreated];
    const batch = await revoked([token]);
    for (const as of ['nonsense', batch]) {
      const answer = await daemon.manage('POST', `/manage/batches/${batch}/undo`, {}, { 'x-audit-batch': as });
      problemOf(answer, 400, 'invalid_request');
    }
    problemOf(await daemon.manage('POST', `/manage/batches/${batch}/undo`, { cursor: 'x' }), 400, 'invalid_request');
    expect(await areActive([token])).to.deep.equal([false]);
    expect(idsOf(await undo(batch.toUpperCase()))).to.deep.equal([token.id]);
  });

  describe('in the audit log', () => {
    it('is one record with their number, or its members', async () => {
      const all = await tokens(3);
      const batch = await revoked(all);
      const other = await daemon.createProject();
      await patch(other.id, { name: 'b2' }, batch);
      const [last, ...before] = await list('group=batch');
      expect(last).to.include({ batch, count: 4, token_id: null, project_id: null, token_name: null, details: null });
      expect(before.map(({ batch: its }) => its)).not.to.include(batch);
      expect(before).to.have.length((await list('')).length - 4);
      expect((await list(`batch=${batch}`)).map(({ token_id }) => token_id)).to.deep.equal([
        null,
        ...all.map(({ id }) => id).reverse(),
      ]);
      expect((await list(`batch=${batch}&group=batch`)).map(({ count }) => count)).to.deep.equal([4]);
      expect(await list(`batch=${UNKNOWN}`)).to.deep.equal([]);
    });

    it('keeps what its records have in common, and is whole if it is a single one', async () => {
      const batch = await revoked(await tokens(2));
      const single = await revoked(await tokens(1));
      const [one, two] = await list('group=batch&action=token.revoke');
      expect(one).to.include({ batch: single, count: null }).and.to.have.property('token_id').that.is.a('string');
      expect(one?.details).to.deep.equal({ is_active: [true, false] });
      expect(two).to.include({ batch, count: 2, project_id: project.id, token_id: null });
    });

    it('is on one page only, and found by what any of its records has', async () => {
      const batches: string[] = [];
      for (let at = 0; at < 5; at++) batches.push(await revoked(await tokens(3)));
      const third = (await tokens(1))[0]!;
      await set(third.id, false, batches[2]);
      for (const query of ['', '&action=token.revoke', `&project_id=${project.id}`, '&q=t1']) {
        const pages = await pagesOf<WireAuditRecord>(daemon, `/manage/audit?group=batch&limit=2${query}`);
        const found = pages.flat().flatMap(({ batch }) => batch ?? []);
        const order = query === '&q=t1' ? batches.toReversed() : [2, 4, 3, 1, 0].map((at) => batches[at]);
        expect(found, query).to.deep.equal(order);
      }
      const [record] = await list(`group=batch&token_id=${third.id}&action=token.revoke`);
      expect(record).to.include({ batch: batches[2], count: 4 });
    });

    it('is found by the words that lists show: action, actor, outcome, and changed fields', async () => {
      const batch = randomUUID();
      await patch(project.id, { missing_usage: 'inject' }, batch);
      problemOf(await daemon.manage('PATCH', `/manage/tokens/${UNKNOWN}`, { is_active: false }), 404, 'not_found');
      const actions = async (q: string) => [...new Set((await list(`q=${q}`)).map(({ action }) => action))];
      expect(await actions('project.update')).to.deep.equal(['project.update']);
      expect(await actions('management project')).to.have.members(['project.create', 'project.update']);
      expect(await actions('denied')).to.deep.equal(['token.revoke']);
      expect(await actions('missing_usage inject')).to.deep.equal(['project.update']);
      expect(await actions(batch.slice(0, 8))).to.deep.equal(['project.update']);
    });
  });
});
