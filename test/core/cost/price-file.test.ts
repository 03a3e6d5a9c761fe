import { expect } from 'chai';
import { PriceFileInvalid, pricesIn } from '../../../daemon/core/cost/price-file.js';
import { PriceBook } from '../../../daemon/core/cost/prices.js';

const problemsOf = (text: string): readonly string[] => {
  try {
    pricesIn(text);
  } catch (error) {
    if (error instanceof PriceFileInvalid) return error.problems;
    throw error;
  }
  return [];
};
const fileOf = (...entries: string[]) => `{"prices": [\n${entries.join(',\n')}\n]}`;

describe('PRICES_FILE', () => {
  it('has all that an entry can say', () => {
    const prices = pricesIn(
      fileOf(
        `{"model": "House-*", "provider": "azure", "input": "1.25", "output": "10", "cache_read": "0.125", "cache_write": "1.5",
          "cache_write_1h": "2.5", "reasoning": "11", "audio_input": "32", "audio_output": "64.000001", "per_request": "0.000000001",
          "max_output": 8000, "context": 128000, "part_tokens": 1500, "valid_from": "2026-01-01",
          "tiers": [{"above_input_tokens": 200000, "input": "2.5"}]}`,
        '{"model": "embed", "input": "0.02", "output": "0"}',
      ),
    );
    const price = new PriceBook(prices, []).priceOf('house-large', 'azure', Date.parse('2026-06-01'));
    const amounts = {
      ...{
        input: 1_250_000n,
        output: 10_000_000n,
        cacheRead: 125_000n,
        cacheWrite: 1_500_000n,
        cacheWrite1h: 2_500_000n,
      },
      ...{ reasoning: 11_000_000n, audioInput: 32_000_000n, audioOutput: 64_000_001n, perRequest: 1_000n },
    };
    expect(price).to.deep.equal({
      ...{ model: 'house-*', provider: 'azure', source: 'file', ...amounts },
      ...{ maxOutput: 8_000, context: 128_000, partTokens: 1_500, validFromMs: Date.parse('2026-01-01') },
      tiers: [{ ...amounts, aboveInputTokens: 200_000, input: 2_500_000n }],
    });
  });

  const BROKEN: [what: string, text: string, problem: RegExp][] = [
    ['text that is not JSON', '{"prices": [\n{"model": x}]}', /^line 2: not JSON$/],
    ['an end that is missing', '{"prices": [\n', /^line 2: not JSON: it ends too early$/],
    ['a comma too many', '{"prices": [\n{"model": "m",\n}]}', /^line 3: not JSON$/],
    ['a member twice', fileOf('{"model": "m",\n"model": "m"}'), /^line 3: a second member "model"$/],
    ['something after the end', '{"prices": []}\n{}', /^line 2: not JSON/],
    ['too many levels', `{"prices": ${'['.repeat(100)}`, /^line 1: nested too deeply$/],
    ['another file', '[]', /^line 1: the file must be an object$/],
    ['no prices', '{}', /^line 1: prices is missing$/],
    ['an unknown member of the file', '{"prices": [], "price": 1}', /^line 1: price is not known$/],
    [
      'a number for an amount',
      fileOf('{"model": "m", "input": 1.25, "output": "1"}'),
      /^line 2: prices\[0\]\.input must be a decimal string/,
    ],
    ['a negative amount', fileOf('{"model": "m", "input": "-1", "output": "1"}'), /^line 2: prices\[0\]\.input must/],
    [
      'too many places',
      fileOf('{"model": "m", "input": "0.1234567", "output": "1"}'),
      /^line 2: prices\[0\]\.input .* up to 6 places$/,
    ],
    ['a missing amount', fileOf('{"model": "m",\n "input": "1"}'), /^line 2: prices\[0\]\.output is missing$/],
    [
      'an unknown member',
      fileOf('{"model": "m", "input": "1", "output": "1",\n"cached": "1"}'),
      /^line 3: prices\[0\]\.cached is not known; use /,
    ],
    [
      'a member of every object',
      fileOf('{"model": "m", "input": "1", "output": "1", "constructor": "1"}'),
      /constructor is not known/,
    ],
    [
      'an unknown provider',
      fileOf('{"model": "m", "provider": "opanai", "input": "1", "output": "1"}'),
      /provider must be one of openai, /,
    ],
    [
      'a day that does not exist',
      fileOf('{"model": "m", "input": "1", "output": "1", "valid_from": "2026-02-30"}'),
      /valid_from must be a day/,
    ],
    [
      'a tier without a limit',
      fileOf('{"model": "m", "input": "1", "output": "1", "tiers": [{"input": "2"}]}'),
      /^line 2: prices\[0\]\.tiers\[0\]\.above_input_tokens is missing$/,
    ],
    [
      'a member that tiers do not have',
      fileOf('{"model": "m", "input": "1", "output": "1", "tiers": [{"above_input_tokens": 1, "context": 1}]}'),
      /tiers\[0\]\.context is not known/,
    ],
    [
      'two entries for the same',
      fileOf('{"model": "m", "input": "1", "output": "1"}', '{"model": "M", "input": "2", "output": "1"}'),
      /^line 3: prices\[1\] has the same model, provider and valid_from as the entry in line 2$/,
    ],
    [
      'too many entries',
      fileOf(...Array<string>(10_001).fill('{}')),
      /^line 1: prices must be a list of up to 10,000 objects$/,
    ],
  ];
  for (const [what, text, problem] of BROKEN) {
    it(`is refused with its line and member: ${what}`, () => {
      expect(problemsOf(text)[0]).to.match(problem);
    });
  }

  it('is refused with a few of its problems', () => {
    expect(problemsOf(fileOf(...Array<string>(100).fill('{}')))).to.have.lengthOf(10);
  });
});
