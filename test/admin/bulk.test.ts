/** Changes of many tokens at once: those that are selected, or all that match a filter. */
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { startDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { auditOf } from '../support/management.js';
import { makeTokens } from '../support/many-tokens.js';
import { adminForEachTest, type Fields, loggedIn, type PageResult } from './test-browser.js';

const MISSING = '00000000-0000-4000-8000-000000000000';

describe('changes of many tokens in the Admin UI', () => {
  const { daemon, browser } = adminForEachTest();
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  const create = async (count: number, name: string) => {
    for (let i = 0; i < count; i++) await daemon.createToken(project.id, { name: `${name}-${i}` });
  };
  const countOf = async (query: string) => {
    const { headers } = await daemon.manage('GET', `/manage/tokens?limit=1&${query}`);
    return Number(headers.get('x-total-count'));
  };
  /** The form of the confirmation page. */
  const hiddenIn = ({ html }: PageResult): Fields =>
    Object.fromEntries(
      [...html.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name = '', value = '']) => [
        name,
        value.replaceAll('&amp;', '&'),
      ]),
    );
  const ask = (query: string, what = 'revoke') => browser.post('tokens/marked', { what, all: 'yes', query });
  const confirm = (asked: PageResult, more: Fields = {}) =>
    browser.post('tokens/marked', { ...hiddenIn(asked), ...more });

  it('revoke all tokens that match the filter, on all pages, with one reason and one record each', async () => {
    await create(120, 'old');
    await create(2, 'new');
    const list = await browser.get('tokens?q=old&sort=name');
    expect(list.html)
      .to.include('All 120 that match this filter')
      .and.to.include('name="query" value="q=old&amp;sort=name"');
    expect((await browser.get('tokens')).html).to.include('All 122 of the list');

    const asked = await ask('q=old&sort=name');
    expect(asked.html).to.include('Revoke 120 tokens?').and.to.include('name or ID <strong>old</strong>');
    expect(await countOf('state=revoked'), 'only asked').to.equal(0);
    const { html } = await confirm(asked, { reason: 'leaked' });
    expect(html).to.include('>120 tokens revoked.<').and.to.include('Keep this page open');
    expect(html.match(/<progress max="120" value="\d+"/g)!.length).to.be.within(10, 50);
    expect(await countOf('state=revoked')).to.equal(120);
    expect(await countOf('state=active')).to.equal(2);
    const records = (await auditOf(daemon)).filter(({ action }) => action === 'token.revoke');
    expect(records).to.have.length(120);
    expect(records.every(({ reason }) => reason === 'leaked')).to.equal(true);

    const back = await confirm(await ask('state=revoked', 'reactivate'));
    expect(back.html).to.include('>120 tokens reactivated.<');
    expect(await countOf('state=active')).to.equal(122);
  });

  it('say that a filter means all tokens, and that no token matches', async () => {
    await create(1, 'one');
    expect((await ask('sort=name')).html).to.include('These are all tokens of all projects.');
    expect((await ask(`state=active&project_id=${project.id}`)).html).to.include('project <strong>web</strong>');
    const none = await ask('q=nobody');
    expect(none.status).to.equal(400);
    expect(none.html).to.include('no tokens match this filter any more');
  });

  it('ask again if more tokens match than were confirmed', async () => {
    await create(2, 'ci');
    const asked = await ask('q=ci');
    await create(1, 'ci');
    const again = await confirm(asked, { reason: 'leaked' });
    expect(again.status).to.equal(400);
    expect(again.html).to.include('The filter now matches 3 tokens, not 2. Nothing was changed.');
    expect(again.html).to.include('Revoke 3 tokens?').and.to.include('value="leaked"');
    expect(await countOf('state=revoked')).to.equal(0);
    expect((await confirm(again)).html).to.include('>3 tokens revoked.<');
  });

  it('refuse a number of tokens that nobody was shown', async () => {
    await create(1, 'ci');
    const asked = await ask('q=ci');
    for (const count of ['x', '1e9', '-1']) {
      const { status, html } = await confirm(asked, { count });
      expect({ status, count }).to.deep.equal({ status: 400, count });
      expect(html).to.include('count must be a number up to 10,000');
    }
    expect(await countOf('state=revoked')).to.equal(0);
  });

  it('revoke the selected tokens, and no others', async () => {
    await create(4, 'ci');
    const ids = (await daemon.manage('GET', '/manage/tokens?sort=name')).body as WireToken[];
    const [one, two, three, four] = ids.map(({ id }) => id);
    const marked = [one, two, three].map((id) => ['id', id!]);
    await daemon.manage('DELETE', `/manage/tokens/${three}`);
    for (const { id } of ids) expect((await browser.get('tokens')).html).to.include(`name="id" value="${id}"`);

    const before = await auditOf(daemon);
    const asked = await browser.post('tokens/marked', [['what', 'revoke'], ...marked]);
    expect(asked.html).to.include('Revoke 3 tokens?').and.to.include('name="confirmed"');
    expect(await auditOf(daemon), 'only asked').to.deep.equal(before);
    const confirmed = [['what', 'revoke'], ['confirmed', 'yes'], ['reason', 'leaked'], ...marked];
    expect((await browser.post('tokens/marked', [...confirmed, ['form_token', 'another']])).status).to.equal(403);
    expect(await auditOf(daemon), 'without the CSRF token').to.deep.equal(before);

    const done = await browser.post('tokens/marked', [...confirmed, ['id', MISSING]]);
    expect(done.html)
      .to.include('2 tokens revoked.')
      .and.to.include('1 token was already revoked.')
      .and.to.include('1 token not revoked:')
      .and.to.include('not found');
    const records = (await auditOf(daemon)).slice(before.length).filter(({ outcome }) => outcome === 'success');
    expect(records.map(({ action, reason, token_id: id }) => [action, reason, id])).to.have.deep.members([
      ['token.revoke', 'leaked', one],
      ['token.revoke', 'leaked', two],
    ]);
    expect((await daemon.token(four!)).state).to.equal('active');
    const back = await browser.post('tokens/marked', [['what', 'reactivate'], ['confirmed', 'yes'], ...marked]);
    expect(back.html).to.include('3 tokens reactivated.');
    expect((await browser.post('tokens/marked', { what: 'revoke' })).html).to.include('no tokens selected');
  });

  describe('can be undone', () => {
    const undoIn = ({ html }: PageResult) => / action="\/admin\/(batches\/[\w-]+\/undo)"/.exec(html)?.[1] ?? '';

    it('findings-3 C6: except what somebody else has changed since, and redone', async () => {
      await create(5, 'ci');
      const [one, two] = (await daemon.manage('GET', '/manage/tokens?sort=name')).body as WireToken[];
      const done = await confirm(await ask('q=ci'), { reason: 'leaked' });
      expect(done.html).to.include('>5 tokens revoked.<');
      // Somebody else takes the first one back and revokes it for good, and somebody reactivates the second one.
      await daemon.manage('PATCH', `/manage/tokens/${one!.id}`, { is_active: true });
      await daemon.manage('PATCH', `/manage/tokens/${one!.id}`, { is_active: false });
      await daemon.manage('PATCH', `/manage/tokens/${two!.id}`, { is_active: true });

      const undone = await browser.post(undoIn(done));
      expect(undone.status).to.equal(200);
      expect(undone.html)
        .to.include('3 changes undone.')
        .and.to.include('2 were changed again since and stay as they are.')
        .and.to.include(`href="/admin/tokens/${one!.id}"`);
      expect(await countOf('state=revoked'), 'the one of somebody else').to.equal(1);
      const redone = await browser.post(undoIn(undone));
      expect(redone.html).to.include('3 changes undone.');
      expect(await countOf('state=revoked')).to.equal(4);
    });

    it('findings-3 C7: from the audit log, where they are one row with its members', async () => {
      await create(3, 'ci');
      await confirm(await ask('q=ci'), { reason: 'leaked' });
      const { html } = await browser.get('audit?action=token.revoke');
      expect(html.match(/<th scope="row">/g)).to.have.length(1);
      const [, members = ''] = /<a href="\/admin\/(audit\?batch=[\w-]+)">token\.revoke × 3</.exec(html) ?? [];
      const page = await browser.get(members);
      expect(page.html.match(/<th scope="row">/g)).to.have.length(3);
      expect(page.html).to.include('ci-0').and.to.include('ci-2');
      const [, to = ''] = /href="\/admin\/(batches\/[\w-]+\/undo)" class="button" data-dialog/.exec(page.html) ?? [];
      const asked = await browser.get(to);
      expect(asked.html).to.include('Undo 3 changes?').and.to.include('token.revoke by');
      expect(await countOf('state=revoked'), 'only asked').to.equal(3);
      expect((await browser.post(to, { reason: 'x'.repeat(201) })).status).to.equal(400);
      expect((await browser.post(to, { reason: 'a mistake' })).html).to.include('3 changes undone.');
      expect(await countOf('state=revoked')).to.equal(0);
      const records = (await auditOf(daemon)).filter(({ action }) => action === 'token.reactivate');
      expect(records.map(({ reason }) => reason)).to.deep.equal(['a mistake', 'a mistake', 'a mistake']);
      expect((await browser.get(`batches/${MISSING}/undo`)).status).to.equal(404);
      expect((await browser.post(`batches/${MISSING}/undo`)).status).to.equal(404);
      const all = JSON.parse((await browser.get('audit/export?format=json&action=token.revoke')).html) as unknown[];
      expect(all, 'a file has all records').to.have.length(3);
    });
  });

  it('list those whose change has an unknown result', async () => {
    await create(70, 'ci');
    const asked = await ask('q=ci');
    let changes = 0;
    daemon.daemon.stores.records.refuseChangesWhile(() => (++changes > 10 ? 'the disk is full' : null));
    const { html } = await confirm(asked);
    expect(html)
      .to.include('10 tokens revoked.')
      .and.to.include('It is unknown whether 60 tokens were revoked.')
      .and.to.include('temporarily unavailable')
      .and.not.to.include('not revoked');
    expect(html.match(/<li><a href="\/admin\/tokens\//g)).to.have.length(50);
    expect(html).to.include('And 10 more.');
  });

  it('show the form again with an invalid reason', async () => {
    await create(2, 'ci');
    const seen = await confirm(await ask('q=ci'), { reason: 'x'.repeat(201) });
    expect(seen.status).to.equal(400);
    expect(seen.html)
      .to.include('The reason must be at most 200 characters')
      .and.to.include('name or ID <strong>ci</strong>');
    expect(await countOf('state=revoked')).to.equal(0);
  });

  it('stop when the browser goes', async () => {
    await create(150, 'ci');
    const asked = await ask('q=ci');
    let changes = 0;
    let arrived: () => void = () => undefined;
    const started = new Promise<void>((resolve) => (arrived = resolve));
    daemon.daemon.stores.records.refuseChangesWhile(() => {
      if (++changes === 20) arrived();
      return null;
    });
    const gone = new AbortController();
    const sent = browser.openForm('tokens/marked', hiddenIn(asked), gone.signal).then((response) => response.text());
    await started;
    gone.abort();
    await sent.catch(() => undefined);
    let revoked = -1;
    await eventually('nothing more is changed', async () => {
      const before = revoked;
      revoked = await countOf('state=revoked');
      return revoked === before;
    });
    expect(revoked).to.be.within(1, 149);
  });

  it('refuse more than 10,000 tokens', async function () {
    this.timeout(30_000);
    await daemon.stop();
    await makeTokens(daemon.databasePath, 10_001);
    const many = await startDaemon({ dir: daemon.dir });
    const there = await loggedIn(many.managementUrl);
    const { status, html } = await there.post('tokens/marked', { what: 'revoke', all: 'yes', query: '' });
    await many.stop();
    expect(status).to.equal(400);
    expect(html).to.include('10,001 tokens match this filter, and up to 10,000 can be changed here');
  });
});
