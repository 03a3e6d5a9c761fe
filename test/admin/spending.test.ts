/** What somebody who pays looks for in the Admin UI, and the clicks that it takes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { completion, json } from '../../daemon/demo/responses.js';
import { TestClock } from '../support/clock.js';
import { temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { perTest } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { adminForEachTest } from './test-browser.js';

/** US dollars per million model tokens: a request costs 10 dollars with the large model, and 1 with the small one. */
function pricesFile(): string {
  const path = join(temporaryFolder(), 'prices.json');
  const prices = [
    { model: 'large', input: '100000', output: '0' },
    { model: 'small', input: '10000', output: '0' },
  ];
  writeFileSync(path, JSON.stringify({ prices }));
  return path;
}

describe('what was spent, in the Admin UI', () => {
  const provider = perTest(startProvider);
  const { daemon, browser } = adminForEachTest(() => ({
    upstream: provider.url,
    env: { PRICES_FILE: pricesFile() },
    clock: new TestClock({ standsStill: false }),
  }));

  async function ask({ token }: { token: string }, model: string): Promise<void> {
    const init = { method: 'POST', body: JSON.stringify({ model }), headers: { 'content-type': 'application/json' } };
    await (await daemon.call(token, '/v1/chat/completions', init)).text();
  }

  let web: WireProject;
  let intern: WireToken;

  beforeEach(async () => {
    provider.answer = (_req, res, { body }) => {
      const { model } = JSON.parse(body.toString()) as { model: string };
      json(res, 200, completion(model, 'word', { prompt: 100, completion: 1 }));
    };
    web = await daemon.createProject({ name: 'web' });
    const shop = await daemon.createProject({ name: 'shop' });
    const made = await daemon.createToken(web.id, { name: 'intern', budget: { usd: '25.00', period: 'month' } });
    for (const model of ['large', 'large', 'small', 'house']) await ask(made, model);
    await ask(await daemon.createToken(shop.id), 'small');
    await eventually('it is written what was spent', async () => {
      daemon.daemon.scheduler.publishAll();
      daemon.clock.advance(6_000);
      await daemon.daemon.usage.flush();
      intern = (await daemon.manage('GET', `/manage/tokens/${made.id}`)).body as WireToken;
      return intern.spent.usd === '21.00' && intern.spent.unpriced_requests === 1;
    });
  });

  it('says on the overview which project cost most in 7 days, and which model in it', async () => {
    const { html } = await browser.get();
    const section = /<section[^>]*id="costs"[^]*?<\/section>/.exec(html)?.[0] ?? '';
    const text = section.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(text).to.match(
      /Cost, last 7 days \$22\.00\+ in all web most by large ?, \$20\.00 \$21\.00\+ shop .*\$1\.00/,
    );
    const [, to = ''] = /href="\/admin\/(usage[^"]*)"/.exec(section) ?? [];
    const usage = (await browser.get(to.replaceAll('&amp;', '&'))).html;
    expect(usage)
      .to.contain('cost $22.00+')
      .and.to.match(/web[^]*large[^]*\$20\.00[^]*house[^]*unknown/);
  });

  it('names budgets that are nearly spent among what is wrong', async () => {
    const { html } = await browser.get();
    const problems = /id="problems"[^]*?<\/section>/.exec(html)?.[0] ?? '';
    expect(problems)
      .to.contain(`href="/admin/tokens/${intern.id}"`)
      .and.to.contain('budget nearly spent')
      .and.to.contain('$21.00+ of $25 this month (84%)');
    expect((await browser.get('tokens?q=left%3A%3C20%25')).html).to.contain('<bdi>intern</bdi>');
    expect((await browser.get('tokens?left_under=10')).html).not.to.contain('<bdi>intern</bdi>');
  });

  it('says on its page what a token has spent, what is left, and what happens at the limit', async () => {
    const { html } = await browser.get(`tokens/${intern.id}`);
    expect(html)
      .to.contain('$25 a month, soft.')
      .and.to.match(/\$21\.00\+ of \$25 this month \(84%\), \$[0-4]\.\d+ left/)
      .and.to.contain('aria-label="84 % spent"')
      .and.to.contain('<dt>Allows</dt><dd>everything</dd>')
      .and.to.contain('<dt>Limits</dt><dd>unlimited</dd>')
      .and.to.contain('At the limit, new requests are refused with 402 until the next month (UTC)')
      .and.to.match(/404 model tokens this month,(?: \$[\d.]+ reserved,)? 1 request of unknown cost/);
    expect((await browser.get(`projects/${web.id}`)).html).to.match(/\$21\.00\+ and 404 model tokens since \d{4}/);
  });

  it('caps a token at 20 dollars with 2 clicks from its page', async () => {
    const { html } = await browser.get(`tokens/${intern.id}`);
    expect(html).to.contain(`href="/admin/tokens/${intern.id}/budget"`);
    const form = (await browser.get(`tokens/${intern.id}/budget`)).html;
    // Then 20 can be typed at once.
    expect(form).to.match(/<input(?=[^>]* autofocus="")[^>]* name="budget_usd"/);
    const version = `"${/name="version" value="&quot;([^"]+)&quot;"/.exec(form)![1]!}"`;
    const fields = { version, budget_usd: '20', budget_tokens: '', budget_period: 'month', budget_mode: 'soft' };
    const done = await browser.follow(browser.post(`tokens/${intern.id}/budget`, fields));
    expect(done.html).to.contain('Budget changed.').and.to.contain('$21.00+ of $20 this month (105%), $0 left');
    expect((await browser.get()).html).to.contain('budget spent');
  });
});
