/** The list of prices that is shipped: it is what `npm run prices` makes of the package, and finds the same prices. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { findProvider } from '@pydantic/genai-prices';
import { expect } from 'chai';
import { costOf } from '../../daemon/core/cost/costing.js';
import { PRICED_PROVIDERS } from '../../daemon/core/cost/priced-providers.js';
import { PriceBook } from '../../daemon/core/cost/prices.js';
import { calcPrice, PROVIDERS, priceList, textOf } from '../../packaging/price-list.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('the list of prices that is shipped', () => {
  const { version } = JSON.parse(text('node_modules/@pydantic/genai-prices/package.json')) as { version: string };
  const shipped = text('config/prices.json');
  const { date } = JSON.parse(shipped) as { date: string };
  const list = priceList(version, date);

  it('is what is made of the package', () => {
    expect(textOf(list) === shipped, 'run npm run prices').to.equal(true);
    expect(Object.values(PROVIDERS).filter((name) => !PRICED_PROVIDERS.includes(name))).to.deep.equal([]);
  });

  it('has the prices of the package', () => {
    const book = new PriceBook([], list.prices);
    const timeMs = Date.parse(`${date}T12:00:00Z`);
    const usage = { promptTokens: 300_000, completionTokens: 7_000, totalTokens: 307_000 };
    const cached = { cacheReadTokens: 80_000, cacheWriteTokens: 20_000 };
    const none = { cacheWrite1hTokens: null, reasoningTokens: null, audioInputTokens: null, audioOutputTokens: null };
    const counts = {
      input_tokens: 300_000,
      output_tokens: 7_000,
      cache_read_tokens: 80_000,
      cache_write_tokens: 20_000,
    };
    const different: string[] = [];
    let compared = 0;
    for (const [providerId, provider] of Object.entries(PROVIDERS)) {
      for (const { id, prices } of findProvider({ providerId })?.models ?? []) {
        if (Array.isArray(prices) && prices.some(({ constraint }) => constraint && 'start_time' in constraint))
          continue;
        const expected = calcPrice(counts, id, { providerId, timestamp: new Date(timeMs) });
        const price = book.priceOf(id, provider, timeMs);
        if (!price || !expected) continue;
        const cost = costOf(price, { ...usage, ...cached, ...none, reportedNano: null });
        compared += 1;
        if (cost === null || Math.abs(cost / 1e9 - expected.total_price) > 1e-6)
          different.push(`${provider} ${id}: ${cost} ${expected.total_price}`);
      }
    }
    expect(compared).to.be.above(1_000);
    expect(different).to.deep.equal([]);
  });

  it('finds models as users meet them', () => {
    const book = new PriceBook([], list.prices);
    const inputOf = (model: string, provider: string | null) => {
      const price = book.priceOf(model, provider, Date.parse(date));
      return price && Number(price.input) / 1e6;
    };
    const models: [string, string | null, number][] = [
      ['gpt-4o-2024-08-06', 'openai', 2.5],
      ['gpt-4o-mini', 'azure', 0.15],
      ['text-embedding-3-small', 'openai', 0.02],
      ['claude-sonnet-4-5-20250929', 'anthropic', 3],
      ['claude-sonnet-4-5@20250929', 'gemini', 3],
      ['models/gemini-2.5-pro', 'gemini', 1.25],
      ['mistral-small-latest', 'mistral', 0.1],
      ['llama-3.3-70b-versatile', 'groq', 0.59],
      ['openai/gpt-4o', 'openrouter', 2.5],
      ['gpt-4o', null, 2.5],
    ];
    for (const [model, provider, input] of models) expect(inputOf(model, provider), model).to.equal(input);
  });
});
