/** Prices in the management API and on the command line, and what requests cost by them. */
import { expect } from 'chai';
import type {
  WireAuditRecord,
  WirePriceExplained,
  WirePrices,
  WirePricesMissing,
} from '../../../daemon/api/contract.js';
import { readPriceFile } from '../../../daemon/process/price-lists.js';
import { llmp } from '../../cli/captured.js';
import { eventually } from '../../support/eventually.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';
import { head } from '../../support/raw.js';
import { loadSettings } from '../../../config/settings.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../../support/daemon.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

describe('prices', () => {
  const scene = ProxyFixture.forSuite();
  const answer = (body: object, status = 200) => {
    scene.provider.answer = (_req, res) => {
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    };
  };
  const post = async (path = '/v1/chat/completions', method = 'POST') => {
    scene.daemon.ended.length = 0;
    const fields = method === 'POST' ? { 'Content-Length': '2' } : {};
    await scene.send(head(`${method} ${path}`, scene.secret, fields) + (method === 'POST' ? '{}' : ''), method);
    return (await scene.onlyRecord()).costNano;
  };
  const read = async <T>(path: string) => (await scene.daemon.manage('GET', `/manage/${path}`)).body as T;
  const chat = (model: string, usage?: object) => ({
    object: 'chat.completion',
    model,
    choices: [],
    ...(usage && { usage }),
  });
  const USED = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };

  it('are those of the requests that are recorded', async () => {
    answer(chat('gpt-4o-mini-2024-07-18', { ...USED, prompt_tokens_details: { cached_tokens: 400 } }));
    expect(await post()).to.equal(600 * 150 + 400 * 75 + 100 * 600); // 0.15, 0.075 and 0.60 USD per million tokens
    const counts = {
      input_tokens: 100,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 500,
      output_tokens: 10,
    };
    const written = { cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 } };
    answer({ type: 'message', model: 'claude-sonnet-4-5-20250929', usage: { ...counts, ...written } });
    expect(await post('/v1/messages')).to.equal(100 * 3_000 + 10 * 3_750 + 20 * 6_000 + 500 * 300 + 10 * 15_000);
  });

  it('are not paid for what ran no model, and not known for what cannot be counted', async () => {
    answer({ object: 'list', data: [] });
    expect(await post('/v1/models', 'GET')).to.equal(0);
    expect(await post('/v1/files')).to.equal(0);
    expect(await post('/v1/messages/count_tokens')).to.equal(0);
    for (const status of [400, 401, 429, 500]) {
      answer({ error: { message: 'no', type: 'invalid_request_error' } }, status);
      expect(await post(), String(status)).to.equal(0);
    }
    answer(chat('gpt-4o-mini'));
    expect(await post()).to.equal(null);
    answer(chat('house-large', USED));
    expect(await post()).to.equal(null);
    // Nobody but OpenRouter is believed what a request cost.
    answer(chat('house-large', { ...USED, cost: 0.01 }));
    expect(await post()).to.equal(null);
  });

  it('are listed, missed and explained, and follow PRICES_FILE', async () => {
    answer(chat('house-large', USED));
    await post();
    const missing = await read<WirePricesMissing>('prices/check');
    expect(missing.models.find(({ model }) => model === 'house-large')).to.deep.include({
      project_id: scene.project.id,
      provider: null,
    });
    const env = { LLMP_SERVER: scene.daemon.url, MANAGEMENT_TOKEN };
    const check = await llmp('prices check', { env });
    expect(check.out).to.contain('house-large');

    const file = join(temporaryFolder(), 'prices.json');
    writeFileSync(file, '{"prices": [{"model": "house-*", "input": "2", "output": "8", "per_request": "0.001"}]}');
    const settings = loadSettings({ MANAGEMENT_TOKEN, PRICES_FILE: file }).reloadable;
    scene.daemon.daemon.apply(settings, { prices: readPriceFile(settings.pricesFile) });
    expect(await post()).to.equal(1_000 * 2_000 + 100 * 8_000 + 1_000_000);
    expect((await read<WirePricesMissing>('prices/check')).models.map(({ model }) => model)).not.to.contain(
      'house-large',
    );

    const { lists, prices, price_count: count } = await read<WirePrices>('prices?model=HOUSE');
    expect(lists.file?.entries).to.equal(1);
    expect(count).to.equal(1);
    expect(prices[0]).to.deep.include({
      model: 'house-*',
      provider: null,
      source: 'file',
      input: '2',
      per_request: '0.001',
    });
    const all = await read<WirePrices>('prices?provider=openrouter&limit=3');
    expect(all.price_count).to.be.above(500);
    expect(all.prices).to.have.lengthOf(3);

    const query = 'model=house-large&prompt_tokens=10&completion_tokens=3&cache_read_tokens=4';
    const explained = await read<WirePriceExplained>(`prices/explain?${query}`);
    expect(explained).to.deep.include({ cost_usd: '0.001044', at_most_usd: '0.001044', provider: null });
    expect(explained.lines.map(({ kind, count: of, usd }) => [kind, of, usd])).to.deep.equal([
      ['input', 6, '0.000012'],
      ['cache read', 4, '0.000008'],
      ['output', 3, '0.000024'],
      ['request', 1, '0.001'],
    ]);
    const shown = await llmp('prices explain house-large --prompt-tokens 10 --completion-tokens 3', { env });
    expect(shown.out)
      .to.contain('of PRICES_FILE')
      .and.to.match(/output +3 × \$8 per million = \$0\.000024/);
    const unknown = await llmp('prices explain unheard-of', { env });
    expect(unknown.exitCode).to.equal(9);
    expect(unknown.out).to.contain('has no price');
    scene.daemon.daemon.apply(settings, { prices: readPriceFile(file) });
    scene.daemon.daemon.apply(settings, { prices: null });
    expect(await post()).to.equal(null);
    const recorded = () => read<WireAuditRecord[]>('audit?action=prices.change');
    await eventually('both changes are recorded', async () => (await recorded()).length === 2);
    const entries = (await recorded()).map(({ actor, details }) => {
      const { file: list } = details as { file: { entries: number } | null };
      return [actor, list && list.entries];
    });
    expect(entries).to.deep.equal([
      ['system', null],
      ['system', 1],
    ]);
  });
});
