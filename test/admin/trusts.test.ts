/** The pages of trusts. */
import { expect } from 'chai';
import type { WireTrust } from '../../daemon/api/contract.js';
import { bodyOf, lastAuditOf } from '../support/management.js';
import { adminForEachTest, wrongField } from './test-browser.js';

describe('trusts in the Admin UI', () => {
  const { daemon, browser } = adminForEachTest();
  const trusts = async () => bodyOf<WireTrust[]>(await daemon.manage('GET', '/manage/trusts'), 200);

  it('are created, changed, deactivated and deleted', async () => {
    const project = await daemon.createProject({ name: 'web' });
    const fields = {
      issuer: 'https://token.actions.githubusercontent.com',
      audience: 'llmp',
      match: 'repository=acme/web\r\n\r\nref = refs/heads/main',
      project_id: project.id,
      name: 'gha {repository}#{run_id}',
      duration_minutes: '30',
      per_hour: '60',
      budget_usd: '1',
    };
    const made = await browser.follow(browser.post('trusts/new', { ...fields, reason: 'ticket 7' }));
    expect(made.html).to.include('Trust created.').and.to.include('repository=acme/web, ref=refs/heads/main');
    const [trust] = await trusts();
    expect(trust).to.deep.include({
      match: { repository: 'acme/web', ref: 'refs/heads/main' },
      name: fields.name,
      duration_minutes: 30,
      max_requests: 0,
      max_active: null,
      per_hour: 60,
      jwks_file: null,
    });
    expect(await lastAuditOf(daemon)).to.include({ action: 'trust.create', reason: 'ticket 7' });

    const to = `trusts/${trust!.id}`;
    const form = (await browser.get(`${to}/change`)).html;
    expect(form).to.include('repository=acme/web\nref=refs/heads/main</textarea>');
    const version = /name="version" value="([^"]+)"/.exec(form)![1]!.replaceAll('&quot;', '"');
    const changes = { ...fields, match: 'repository=acme/shop', per_hour: '', version };
    expect((await browser.follow(browser.post(`${to}/change`, changes))).html).to.include('Trust changed.');
    expect((await trusts())[0]).to.deep.include({
      match: { repository: 'acme/shop' },
      per_hour: null,
      budget: trust!.budget,
    });
    const stale = await browser.post(`${to}/change`, { ...changes, per_hour: '5' });
    expect(stale.html).to.include('Somebody has changed it since');

    for (const [what, isActive] of [
      ['deactivate', false],
      ['activate', true],
    ] as const) {
      await browser.follow(browser.post(`${to}/${what}`));
      expect((await trusts())[0]).to.have.property('is_active', isActive);
    }
    expect((await browser.follow(browser.post(`${to}/delete`))).html).to.include('Trust deleted.');
    expect(await trusts()).to.deep.equal([]);
  });

  it('are not created from a form in which something is wrong', async () => {
    const project = await daemon.createProject({ name: 'web' });
    const right = {
      issuer: 'https://issuer.example.com',
      audience: 'llmp',
      match: 'repository=acme/web',
      project_id: project.id,
      duration_minutes: '30',
    };
    for (const [wrong, says, field] of [
      [{ match: 'repository' }, 'Write each claim as name=value: repository.', 'match'],
      [{ match: 'a=1\na=2' }, 'The claim a is there twice.', 'match'],
      [{ match: 'ref=refs/heads/main' }, 'identif', 'match'],
      [
        { duration_minutes: '0' },
        'Lifetime of the tokens, minutes must be a whole number from 1 to',
        'duration_minutes',
      ],
      [{ issuer: 'http://issuer.example.com' }, 'https', 'issuer'],
    ] as const) {
      const seen = await browser.post('trusts/new', { ...right, ...wrong });
      expect(seen.status, says).to.equal(400);
      expect(/role="alert">([^<]*)</.exec(seen.html)![1]).to.include(says);
      expect(wrongField(seen.html)[0], says).to.equal(field);
      expect(seen.html).to.include('value="llmp"');
    }
    expect(await trusts()).to.deep.equal([]);
  });
});
