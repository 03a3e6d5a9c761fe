/** The provider of a project on pages of the Admin UI: set, changed and checked. */
import { expect } from 'chai';
import type { WireProject } from '../../daemon/api/contract.js';
import { canary } from '../support/canaries.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { perTest } from '../support/per-test.js';
import { replies, startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

const KEY = canary('upstream');
const DEFAULT = { provider: 'default', base_url: '', auth: 'bearer' };

describe('the provider of a project in the Admin UI', () => {
  const provider = perTest(startProvider);
  const other = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({ upstream: provider.url }));
  let project: WireProject;

  beforeEach(async () => {
    project = await daemon.createProject({ name: 'web' });
  });

  const upstreamOf = async (name: string) => {
    const all = (await daemon.manage('GET', '/manage/projects')).body as WireProject[];
    const found = all.find((it) => it.name === name);
    return found && [found.upstream_base_url, found.upstream_auth];
  };
  const change = (fields: object) => browser.post(`projects/${project.id}/provider`, { ...DEFAULT, ...fields });

  describe('in the form of a new project', () => {
    for (const [fields, expected] of [
      [DEFAULT, [null, 'bearer']],
      [{ ...DEFAULT, provider: 'anthropic' }, ['https://api.anthropic.com', 'x-api-key']],
      [{ ...DEFAULT, provider: 'groq', auth: 'api-key' }, ['https://api.groq.com/openai', 'bearer']],
      [
        { ...DEFAULT, provider: 'azure', base_url: ' https://mine.openai.azure.com/ ' },
        ['https://mine.openai.azure.com', 'api-key'],
      ],
      [
        { provider: 'other', base_url: 'https://llm.example/v1', auth: 'x-goog-api-key' },
        ['https://llm.example', 'x-goog-api-key'],
      ],
    ] as const) {
      it(`can be ${JSON.stringify(fields)}`, async () => {
        const seen = await browser.follow(browser.post('projects/new', { name: 'shop', api_key: KEY, ...fields }));
        expect(seen.html).to.include('Project created.');
        expect(await upstreamOf('shop')).to.deep.equal(expected);
      });
    }

    for (const [fields, words] of [
      [{ provider: 'azure' }, 'Azure OpenAI requires a base URL.'],
      [{ provider: 'other' }, 'Another provider requires a base URL.'],
      [{ base_url: 'https://llm.example' }, 'A base URL needs a provider: choose one, or Other.'],
      [{ provider: 'nobody' }, 'Choose a provider.'],
      [{ provider: 'other', base_url: 'http://llm.example' }, 'http is only accepted for localhost'],
    ] as const) {
      it(`is refused with ${JSON.stringify(fields)}, and the form keeps what was entered`, async () => {
        const sent = { name: 'shop', api_key: KEY, ...DEFAULT, ...fields };
        const { status, html } = await browser.post('projects/new', sent);
        expect(status).to.equal(400);
        expect(html).to.include(words).and.to.include('value="shop"').and.not.to.include(KEY);
        if ('base_url' in fields) expect(html).to.include(`value="${fields.base_url}"`);
        expect(await upstreamOf('shop')).to.equal(undefined);
      });
    }
  });

  it('has a form that sets what happens with missing usage', async () => {
    const missingUsage = async () =>
      ((await daemon.manage('GET', `/manage/projects/${project.id}`)).body as WireProject).missing_usage;
    await browser.follow(change({ missing_usage: 'inject' }));
    expect(await missingUsage()).to.equal('inject');
    const { html } = await browser.get(`projects/${project.id}/provider`);
    expect(html).to.match(/<option value="inject" selected="">/);
    expect((await browser.get(`projects/${project.id}`)).html).to.include('inject: ask for it');
    await browser.follow(change({ missing_usage: 'off' }));
    expect(await missingUsage()).to.equal('off');
    const created = { name: 'shop', api_key: KEY, ...DEFAULT, missing_usage: 'inject' };
    await browser.follow(browser.post('projects/new', created));
    const all = (await daemon.manage('GET', '/manage/projects')).body as WireProject[];
    expect(all.find(({ name }) => name === 'shop')?.missing_usage).to.equal('inject');
  });

  it('is shown on the list and on the page of the project', async () => {
    expect((await browser.get(`projects/${project.id}`)).html).to.include('default of the daemon');
    await change({ provider: 'mistral', api_key: KEY });
    expect((await browser.get('projects')).html).to.include('>Mistral<');
    expect((await browser.get(`projects/${project.id}`)).html).to.include(
      'Mistral <code>https://api.mistral.ai</code>',
    );
  });

  describe('on the page that changes it', () => {
    it('begins with the current one', async () => {
      await change({ provider: 'other', base_url: other.url, auth: 'x-api-key', api_key: KEY });
      const { html } = await browser.get(`projects/${project.id}/provider`);
      expect(html)
        .to.match(/<option value="other" selected="">/)
        .and.to.match(/<option value="x-api-key" selected="">/)
        .and.to.include(`value="${other.url}"`)
        .and.not.to.include(KEY);
    });

    it('is changed with its key, which is checked there', async () => {
      const fields = { provider: 'other', base_url: other.url, api_key: KEY, check_key: 'yes', reason: 'moved' };
      const seen = await browser.follow(change(fields));
      expect(seen.html).to.include('Provider changed. New requests go to it. The provider accepted the key.');
      expect(await upstreamOf('web')).to.deep.equal([other.url, 'bearer']);
      expect(other.received.at(-1)?.headers.authorization).to.equal(`Bearer ${KEY}`);
    });

    it('needs the key of a provider on another host', async () => {
      const { status, html } = await change({ provider: 'openrouter' });
      expect(status).to.equal(400);
      expect(html)
        .to.include('This provider is on another host: enter its key.')
        .and.to.match(/<option value="openrouter" selected="">/);
      expect(await upstreamOf('web')).to.deep.equal([null, 'bearer']);
    });

    it('needs no key for another header, and keeps one of the default', async () => {
      await browser.follow(change({ provider: 'other', base_url: provider.url, auth: 'x-api-key' }));
      expect(await upstreamOf('web')).to.deep.equal([provider.url, 'x-api-key']);
      await daemon.manage('PATCH', `/manage/projects/${project.id}`, { upstream_base_url: null });
      await browser.follow(change({}));
      expect(await upstreamOf('web')).to.deep.equal([null, 'x-api-key']);
    });
  });

  describe('check', () => {
    const check = () => browser.post(`projects/${project.id}/check`);

    it('says that the provider accepts the key', async () => {
      expect((await browser.get(`projects/${project.id}`)).html).to.include('Check provider');
      const { status, html } = await check();
      expect(status).to.equal(200);
      expect(html).to.match(/The provider accepted the key, after [\d,]+ ms\./);
      // This address has no page that could be refreshed.
      expect(html).not.to.include('data-refresh');
      expect(provider.received.at(-1)?.headers.authorization).to.equal(`Bearer ${UPSTREAM_KEY}`);
    });

    it('says what is wrong', async () => {
      provider.answer = replies(401, { error: UPSTREAM_KEY });
      const refused = await check();
      expect(refused.html)
        .to.include('The provider refused the key with status 401.')
        .and.to.include('role="alert"')
        .and.not.to.include(UPSTREAM_KEY);
      await provider.stop();
      expect((await check()).html).to.include('Upstream unreachable (ECONNREFUSED).');
    });
  });
});
