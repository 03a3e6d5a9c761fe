/** The Admin UI in front of a daemon of an older release, whose responses lack fields of this one. */
import { expect } from 'chai';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { type AdminBefore, type OlderRelease, startAdminBefore } from './older-daemon.js';
import { TestBrowser } from './test-browser.js';

/** Lists and histories are read by these fields, and every release has them. */
const ALWAYS = ['id', 'kind', 'hour', 'day', 'model', 'token_id', 'project_id', 'error', 'code'];
/** So many missing fields are tested together. */
const TOGETHER = 3;

describe('the Admin UI before an older daemon', function () {
  this.timeout(60_000);
  let daemon: TestDaemon;
  let before: AdminBefore;
  let browser: TestBrowser;
  /** The fields of the responses to the last page, and the one that they lack. */
  let seen: Set<string>;
  let lacking: (field: string) => boolean;
  let pages: string[];

  beforeEach(async () => {
    daemon = await startDaemon({ env: { HTTP_CACHE_ENABLED: 'true' } });
    const project = await daemon.createProject({ name: 'web' });
    const used = await daemon.createToken(project.id, { name: 'ci', max_requests: 10 });
    const revoked = await daemon.createToken(project.id);
    await daemon.manage('DELETE', `/manage/tokens/${revoked.id}`, undefined, { 'x-audit-reason': 'leaked' });
    await (await daemon.call(used.token)).text();
    await (await daemon.call(revoked.token)).text();
    daemon.daemon.completions.flush();
    daemon.clock.advance(60_000);
    const [record] = (await daemon.manage('GET', '/manage/audit?limit=1')).body as { id: string }[];
    pages = [
      '',
      'tokens',
      `tokens/${used.id}`,
      `tokens/${revoked.id}`,
      `tokens/new?like=${used.id}`,
      `tokens/${used.id}/revoke`,
      'projects',
      `projects/${project.id}`,
      'usage',
      'usage?by=token%2Cmodel',
      'events',
      'audit',
      `audit/${record!.id}`,
      'cache',
    ];
    seen = new Set();
    lacking = () => false;
    const release: OlderRelease = {
      lacks: (field) => {
        seen.add(field);
        return lacking(field);
      },
    };
    before = await startAdminBefore(daemon, release);
    browser = new TestBrowser(before.url);
    await browser.logIn(MANAGEMENT_TOKEN);
  });
  afterEach(async () => {
    await before.stop();
    await daemon.stop();
  });

  const isSessions = (field: string) => ['ended_at', 'begun_at'].includes(field);
  const UNFIT = /undefined|NaN|\[object|Invalid Date|>null</;

  async function expectFit(page: string, what: string): Promise<void> {
    const { status, html } = await browser.get(page);
    expect(status, `${page} ${what}`).to.equal(200);
    expect(html, `${page} ${what}`).to.not.match(UNFIT);
  }

  it('shows every page without a few fields, and without all of them', async () => {
    let count = 0;
    for (const page of pages) {
      lacking = () => false;
      seen.clear();
      await expectFit(page, 'with all fields');
      const fields = [...seen].filter((field) => !ALWAYS.includes(field) && !isSessions(field));
      expect(fields, page).to.not.be.empty;
      const groups = Math.ceil(fields.length / TOGETHER);
      for (let at = 0; at < groups; at++) {
        const missing = fields.filter((_, index) => index % groups === at);
        lacking = (it) => missing.includes(it);
        await expectFit(page, `without ${missing.join(', ')}`);
        count += missing.length;
      }
      lacking = (it) => fields.includes(it);
      await expectFit(page, 'with few fields');
    }
    expect(count).to.be.greaterThan(100);
  });

  it('shows a dash for what is not reported, instead of zero', async () => {
    lacking = (it) => ['requests_24h', 'errors_24h', 'token_count', 'active_token_count', 'state'].includes(it);
    const { html } = await browser.get('projects');
    expect(html.match(/—/g)!.length).to.be.at.least(4);
    expect((await browser.get('tokens')).html).to.match(/·<\/span> —/);
    const page = pages.find((it) => it.startsWith('projects/')) ?? '';
    expect((await browser.get(page)).html).to.include('— requests, — errors');
  });

  it('streams events that lack fields', async () => {
    lacking = (it) => ['duration_ms', 'status', 'outcome', 'usage', 'code'].includes(it);
    const page = await browser.get('events');
    expect(page.html).to.include('—').and.not.match(UNFIT);
    const [, to = ''] = /data-stream="\/admin\/([^"]*)"/.exec(page.html) ?? [];
    const stream = await browser.openStream(to.replaceAll('&amp;', '&').replace(/since=[^&]*/, 'since=1h'));
    let text = '';
    for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      daemon.clock.advance(1_000);
      if (text.includes('</details>')) break;
    }
    expect(text).to.include('event: rows').and.to.include('—').and.not.match(UNFIT);
  });
});
