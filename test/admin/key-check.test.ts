/** A provider's key that is entered on a page is checked with the provider before it is stored. */
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { lastAuditOf } from '../support/management.js';
import { perTest } from '../support/per-test.js';
import { replies, startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

const KEY = canary('upstream');

describe('a key on a page of the Admin UI', () => {
  const provider = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url }));
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  const projects = async () => (await daemon.manage('GET', '/manage/projects')).body as WireProject[];
  const refuse = (status: number) => {
    provider.answer = replies(status, { error: { message: `the key ${KEY}` } });
  };
  const CHECKED = /<input type="checkbox" name="check_key"[^>]* checked=""/;
  const CREATE = { name: 'shop', api_key: KEY, check_key: 'yes' };

  it('is checked by default, and stored if the provider accepts it', async () => {
    expect((await browser.get('projects/new')).html).to.match(CHECKED);
    expect((await browser.get(`projects/${project.id}`)).html).to.match(CHECKED);

    const created = await browser.follow(browser.post('projects/new', CREATE));
    expect(created.html).to.include('Project created. The provider accepted the key. Now issue a token for it.');
    expect(provider.received.map(({ url, headers }) => [url, headers.authorization])).to.deep.equal([
      ['/v1/models', `Bearer ${KEY}`],
    ]);
    const replaced = await browser.follow(
      browser.post(`projects/${project.id}/key`, { api_key: KEY, check_key: 'yes' }),
    );
    expect(replaced.html).to.include(
      'Upstream key replaced. New requests use the new key. The provider accepted the key.',
    );
    expect(provider.received).to.have.length(2);
    expect((await projects()).map(({ api_key_hint: hint }) => hint)).to.deep.equal([KEY.slice(-4), KEY.slice(-4)]);
  });

  it('is not stored and not shown again if the provider refuses it', async () => {
    refuse(401);
    const before = await projects();
    for (const [to, fields] of [
      ['projects/new', CREATE],
      [`projects/${project.id}/key`, { api_key: KEY, check_key: 'yes' }],
      [`projects/${project.id}/provider`, { ...CREATE, provider: 'other', base_url: provider.url, auth: 'bearer' }],
    ] as const) {
      const { status, html } = await browser.post(to, fields);
      expect(status, to).to.equal(400);
      expect(html)
        .to.include('role="alert"')
        .and.to.include('The provider refused the key with status 401; nothing was changed.')
        .and.to.match(CHECKED)
        .and.not.to.include(KEY)
        // This address has no page that could be refreshed.
        .and.not.to.include('data-refresh');
      expect((await lastAuditOf(daemon)).outcome).to.not.equal('success');
    }
    expect((await browser.post('projects/new', CREATE)).html).to.include('value="shop"');
    expect(await projects()).to.deep.equal(before);
  });

  it('is not stored if it cannot be checked, and stored without a check on request', async () => {
    refuse(503);
    const fields = { api_key: KEY, check_key: 'yes' };
    const { status, html } = await browser.post(`projects/${project.id}/key`, fields);
    expect(status).to.equal(400);
    expect(html)
      .to.include('The key could not be checked: the provider responded with status 503. Nothing was changed.')
      .and.to.include('clear the checkbox')
      .and.not.to.include('omit check_key')
      .and.not.to.include('unknown whether');
    const asked = provider.received.length;
    const stored = await browser.follow(browser.post(`projects/${project.id}/key`, { api_key: KEY }));
    expect(stored.html).to.include('New requests use the new key.').and.not.to.include('The provider accepted');
    expect(provider.received).to.have.length(asked);
    // The choice remains in a form that is shown again for another reason.
    expect((await browser.post('projects/new', { name: 'web', api_key: KEY })).html).to.not.match(CHECKED);
  });

  it('is stored with a remark if the response says nothing about it', async () => {
    refuse(404);
    const unsure = await browser.follow(browser.post('projects/new', CREATE));
    expect(unsure.html).to.include('Project created. The provider could not confirm the key.');
    expect((await browser.get(`projects/${project.id}?done=key&check=%3Cb%3E`)).html).to.not.include('<b>');
  });
});
