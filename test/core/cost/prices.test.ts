import { expect } from 'chai';
import type { DetailedUsage } from '../../../daemon/core/events.js';
import { costOf, explain, isFree, mostFor } from '../../../daemon/core/cost/costing.js';
import { pricedProviderOf } from '../../../daemon/core/cost/priced-providers.js';
import { matches, type Price, PriceBook, type WrittenPrice } from '../../../daemon/core/cost/prices.js';

const NOW = Date.parse('2026-11-29T12:00:00Z');

const USAGE: DetailedUsage = {
  promptTokens: null,
  completionTokens: null,
  totalTokens: null,
  cacheReadTokens: null,
  cacheWriteTokens: null,
  cacheWrite1hTokens: null,
  reasoningTokens: null,
  audioInputTokens: null,
  audioOutputTokens: null,
  reportedNano: null,
};

const priceFrom = (written: Omit<WrittenPrice, 'model'>): Price => {
  const price = new PriceBook([{ model: 'm', ...written }], []).priceOf('m', null, NOW);
  if (!price) throw new Error('no price');
  return price;
};

describe('the price book', () => {
  const priced = (model: string, input: string, more: Partial<WrittenPrice> = {}): WrittenPrice => ({
    model,
    input,
    output: '0',
    ...more,
  });
  const book = new PriceBook(
    [
      priced('gpt-5', '1'),
      priced('gpt-5*', '2'),
      priced('gpt-5-mini*', '3'),
      priced('gpt-5', '4', { provider: 'azure' }),
      priced('later', '5', { validFrom: '2026-12-01' }),
      priced('later', '6', { validFrom: '2026-01-01' }),
      priced('later', '7'),
      priced('*-local-*', '0', { provider: 'ollama' }),
    ],
    [
      priced('gpt-5', '11', { provider: 'openai' }),
      priced('gpt-4o', '12', { provider: 'openai' }),
      priced('gpt-4o-2024-05-13', '13', { provider: 'openai' }),
      priced('gemini-2.5-pro*', '14', { provider: 'gemini' }),
      { model: 'gemini-2.5-pro-image', provider: 'gemini' },
      priced('claude-sonnet-4-5', '15', { provider: 'anthropic' }),
      priced('openai/gpt-4o', '16', { provider: 'openrouter' }),
      priced('MiniMax-M2', '17', { provider: 'minimax' }),
    ],
  );
  const inputOf = (model: string, provider: string | null, timeMs = NOW) => {
    const price = book.priceOf(model, provider, timeMs);
    return price && Number(price.input) / 1e6;
  };

  const CASES: [string, string | null, number | null][] = [
    ['gpt-5', 'azure', 4], // that of its provider
    ['gpt-5', 'openai', 1], // PRICES_FILE before the shipped list, the name before the pattern
    ['gpt-5-nano', 'openai', 2],
    ['gpt-5-mini-2', 'openai', 3], // the longest pattern
    ['gpt-5-2025-08-07', null, 1], // without its date
    ['gpt-5-2025-08-07', 'azure', 4],
    ['GPT-5', null, 1],
    ['gpt-4o', 'openai', 12],
    ['gpt-4o-2024-05-13', 'openai', 13],
    ['gpt-4o-2024-08-06', 'openai', 12],
    ['gpt-4o', 'azure', 12], // offered at the price of its maker
    ['gpt-4o', 'groq', null],
    ['gpt-4o', null, 12],
    ['openai/gpt-4o', 'openrouter', 16],
    ['openai/gpt-4o:free', 'openrouter', null],
    ['openai/gpt-4o', 'openai', 12],
    ['models/gemini-2.5-pro-002', 'gemini', 14],
    ['publishers/google/models/gemini-2.5-pro', 'gemini', 14],
    ['gemini-2.5-pro-image', 'gemini', null], // is known to have no price per token
    ['claude-sonnet-4-5@20250929', 'gemini', 15],
    ['anthropic/claude-sonnet-4-5-20250929', null, 15],
    ['minimax-m2', null, 17],
    ['a-local-model', 'ollama', 0],
    ['a-local-model', 'openai', null],
    ['unheard-of', null, null],
    [`gpt-5${'x'.repeat(1_000)}`, null, null],
  ];

  it('finds the entry that fits a model and its provider best', () => {
    for (const pass of ['at first', 'again']) {
      for (const [model, provider, input] of CASES) {
        expect(inputOf(model, provider), `${model} of ${provider} ${pass}`).to.equal(input);
      }
    }
  });

  it('finds the price at the time of the request', () => {
    const times = ['2025-12-31T23:59:59.999Z', '2026-01-01', '2026-11-30T23:59:59.999Z', '2026-12-01', '2026-06-01'];
    expect(times.map((time) => inputOf('later', null, Date.parse(time)))).to.deep.equal([7, 6, 6, 5, 6]);
  });

  it('replaces its lists', () => {
    const replaced = new PriceBook([priced('m', '1')], []);
    expect(replaced.priceOf('m', null, NOW)?.source).to.equal('file');
    replaced.replace([], [priced('m', '2')]);
    expect(replaced.priceOf('m', null, NOW)).to.include({ input: 2_000_000n, source: 'shipped', maxOutput: null });
  });

  it('forgets what it remembers of many names', () => {
    const names = Array.from({ length: 5_000 }, (_, at) => `gpt-5-${at}`);
    expect(names.every((name) => inputOf(name, 'openai') === 2)).to.equal(true);
  });

  it('matches patterns', () => {
    const does: [string, string, boolean][] = [
      ['a*', 'a', true],
      ['*b*', 'abc', true],
      ['a*b*c', 'axxbyyc', true],
      ['a*b*c', 'ac', false],
      ['ab*ba', 'aba', false],
      ['*', '', true],
      ['a', 'ab', false],
    ];
    for (const [pattern, name, isMatch] of does) expect(matches(pattern, name), `${pattern} ${name}`).to.equal(isMatch);
  });

  it('knows providers by the hosts of their upstreams', () => {
    const hosts: [string, 'bearer' | 'api-key', string | null][] = [
      ['https://api.openai.com', 'bearer', 'openai'],
      ['https://eu.api.openai.com/v1', 'bearer', 'openai'],
      ['https://mine.openai.azure.com', 'api-key', 'azure'],
      ['https://gateway.example.com', 'api-key', 'azure'],
      ['https://gateway.example.com', 'bearer', null],
      ['https://notopenrouter.ai', 'bearer', null],
      ['https://openrouter.ai/api', 'bearer', 'openrouter'],
      ['http://127.0.0.1:11434', 'bearer', 'ollama'],
    ];
    for (const [url, auth, provider] of hosts) expect(pricedProviderOf(url, auth), url).to.equal(provider);
  });
});

describe('the cost of a request', () => {
  const PRICE = priceFrom({
    input: '2',
    output: '10',
    cacheRead: '0.5',
    cacheWrite: '2.5',
    cacheWrite1h: '4',
    reasoning: '12',
    audioInput: '32',
    audioOutput: '64',
    perRequest: '0.001',
    tiers: [
      { aboveInputTokens: 200, input: '4', output: '20' },
      { aboveInputTokens: 100, input: '3' },
    ],
  });

  it('is that of each kind of token at its price', () => {
    const usage = {
      ...USAGE,
      ...{ promptTokens: 100, cacheReadTokens: 10, cacheWriteTokens: 20, cacheWrite1hTokens: 5, audioInputTokens: 7 },
      ...{ completionTokens: 50, reasoningTokens: 30, audioOutputTokens: 4 },
    };
    // 63×2 + 10×0.5 + 15×2.5 + 5×4 + 7×32 + 16×10 + 30×12 + 4×64 = 1188.5 USD per million, and 0.001.
    expect(costOf(PRICE, usage)).to.equal(1_188_500 + 1_000_000);
    expect(explain(PRICE, usage)?.lines.map(({ kind, count, pico }) => [kind, count, Number(pico)])).to.deep.equal([
      ['input', 63, 126_000_000],
      ['cache read', 10, 5_000_000],
      ['cache write', 15, 37_500_000],
      ['cache write for 1 hour', 5, 20_000_000],
      ['audio input', 7, 224_000_000],
      ['output', 16, 160_000_000],
      ['reasoning', 30, 360_000_000],
      ['audio output', 4, 256_000_000],
      ['request', 1, 1_000_000_000],
    ]);
  });

  it('is at the price of a tier as a whole', () => {
    const costs = [100, 101, 200, 201].map((promptTokens) => {
      const cost = explain(PRICE, { ...USAGE, promptTokens, completionTokens: 1 });
      return [cost?.aboveInputTokens, (cost?.nano ?? 0) - 1_000_000];
    });
    expect(costs).to.deep.equal([
      [null, 200_000 + 10_000],
      [100, 303_000 + 10_000],
      [100, 600_000 + 10_000],
      [200, 804_000 + 20_000],
    ]);
  });

  it('is unknown if a count that it depends on is', () => {
    const chat = priceFrom({ input: '1', output: '1' });
    const embedding = priceFrom({ input: '1', output: '0' });
    const free = priceFrom({ input: '0', output: '0' });
    expect(costOf(chat, { ...USAGE, promptTokens: 10 })).to.equal(null);
    expect(costOf(chat, { ...USAGE, completionTokens: 10 })).to.equal(null);
    expect(costOf(chat, { ...USAGE, totalTokens: 10 })).to.equal(null);
    expect(costOf(chat, { ...USAGE, promptTokens: 10, totalTokens: 15 })).to.equal(15_000);
    expect(costOf(embedding, { ...USAGE, promptTokens: 10 })).to.equal(10_000);
    expect(costOf(embedding, { ...USAGE, totalTokens: 10 })).to.equal(10_000);
    expect(costOf(embedding, USAGE)).to.equal(null);
    expect(costOf(free, USAGE)).to.equal(0);
    expect([chat, embedding, free].map(isFree)).to.deep.equal([false, false, true]);
  });

  it('is rounded up once, never negative, and bounded', () => {
    const tiny = priceFrom({ input: '0.000001', output: '0.000001' });
    expect(costOf(tiny, { ...USAGE, promptTokens: 1, completionTokens: 0 })).to.equal(1);
    expect(costOf(tiny, { ...USAGE, promptTokens: 500, completionTokens: 500 })).to.equal(1);
    expect(costOf(tiny, { ...USAGE, promptTokens: 501, completionTokens: 500 })).to.equal(2);
    expect(costOf(tiny, { ...USAGE, promptTokens: 0, completionTokens: 0 })).to.equal(0);
    const small = priceFrom({ input: '1', output: '1', cacheRead: '0' });
    expect(costOf(small, { ...USAGE, promptTokens: 5, cacheReadTokens: 9, completionTokens: 0 })).to.equal(0);
    const dear = priceFrom({ input: '1000000', output: '1000000' });
    expect(costOf(dear, { ...USAGE, promptTokens: 1e9, completionTokens: 1e9 })).to.equal(9e15);
  });

  it('is never more than the bound for its tokens', () => {
    expect(mostFor(PRICE, 100, 50)).to.equal(100 * 32_000 + 50 * 64_000 + 1_000_000);
    expect(mostFor(priceFrom({ input: '1', output: '2' }), 3, 4)).to.equal(11_000);
    const tiers = [{ aboveInputTokens: 10, input: '5', output: '50' }];
    const tiered = priceFrom({ input: '1', output: '10', cacheWrite: '2', tiers });
    expect([10, 11].map((input) => mostFor(tiered, input, 1))).to.deep.equal([30_000, 105_000]);
    let state = 1;
    const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
    for (let round = 0; round < 2_000; round++) {
      const kinds = Array.from({ length: 8 }, () => random(80));
      const [input = 0, read = 0, write = 0, write1h = 0, audio = 0, output = 0, reasoning = 0, spoken = 0] = kinds;
      const promptTokens = input + read + write + write1h + audio;
      const completionTokens = output + reasoning + spoken;
      const parts = { cacheReadTokens: read, cacheWriteTokens: write + write1h, cacheWrite1hTokens: write1h };
      const spokenParts = { audioInputTokens: audio, reasoningTokens: reasoning, audioOutputTokens: spoken };
      const cost = costOf(PRICE, { ...USAGE, promptTokens, completionTokens, ...parts, ...spokenParts });
      expect(cost).to.be.at.most(mostFor(PRICE, promptTokens + random(9), completionTokens + random(9)));
    }
  });
});
