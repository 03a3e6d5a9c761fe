/**
 * Converts the public price list of the package `@pydantic/genai-prices` into the one that llmp ships: `npm run prices` writes
 * config/prices.json, and a test compares it with the package.
 */
import { calcPrice, findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices';
import { nanoFrom } from '../daemon/core/content/token-counts.js';
import type { WrittenAmounts, WrittenPrice } from '../daemon/core/cost/prices.js';
import type { ShippedList } from '../daemon/process/price-lists.js';

export { calcPrice };

/**
 * Our names of the package's providers. For a provider that is not known the first that has the model counts, so those that make models
 * come before those that resell them.
 */
export const PROVIDERS: Readonly<Record<string, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'gemini',
  mistral: 'mistral',
  deepseek: 'deepseek',
  'x-ai': 'xai',
  cohere: 'cohere',
  moonshotai: 'moonshot',
  minimax: 'minimax',
  zai: 'zai',
  zhipuai: 'zhipu',
  voyageai: 'voyage',
  perplexity: 'perplexity',
  azure: 'azure',
  aws: 'bedrock',
  groq: 'groq',
  together: 'together',
  cerebras: 'cerebras',
  fireworks: 'fireworks',
  novita: 'novita',
  baseten: 'baseten',
  avian: 'avian',
  cloudflare: 'cloudflare',
  ovhcloud: 'ovhcloud',
  openrouter: 'openrouter',
};

/** By the package's names of prices, which are in USD per million tokens. */
const AMOUNTS: Readonly<Record<string, keyof WrittenAmounts>> = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cacheRead',
  cache_write_mtok: 'cacheWrite',
  cache_write_1h_mtok: 'cacheWrite1h',
  output_reasoning_mtok: 'reasoning',
  input_audio_mtok: 'audioInput',
  output_audio_mtok: 'audioOutput',
};
const PER_THOUSAND_REQUESTS = 'requests_kcount';
/** What providers do not count in the usage of an ordinary response, or what is paid for tools besides the tokens. */
const LEFT_OUT = /^(?:web_searches|storage_searches)_kcount$/;
/** Left out as well where audio is what matters: images are input, and audio in the cache is a cache read. */
const LEFT_OUT_WITH_AUDIO = /^(?:cache_audio_read|input_image|cache_image_read|input_video)_mtok$/;

/** @param date of the package, such as `2026-09-23`: what was valid only before it is left out. */
export function priceList(version: string, date: string): ShippedList {
  const prices = Object.entries(PROVIDERS).flatMap(([id, provider]) => {
    const found = findProvider({ providerId: id });
    if (!found) throw new Error(`the package has no provider ${id}`);
    return found.models.flatMap((model) => entriesOf(model, provider, date));
  });
  return { source: `@pydantic/genai-prices ${version}`, date, prices };
}

/** Its text: a line for each entry, so that changes are easy to review. */
export const textOf = ({ prices, ...about }: ShippedList): string =>
  `${JSON.stringify(about).slice(0, -1)},"prices":[\n${prices.map((price) => JSON.stringify(price)).join(',\n')}\n]}\n`;

function entriesOf(
  { match, prices, context_window: context }: ModelInfo,
  provider: string,
  date: string,
): WrittenPrice[] {
  const models = [...new Set(patternsOf(match))];
  if (models.length === 0) return [];
  const subject = { model: models.length === 1 ? (models[0] ?? '') : models, provider };
  return periodsOf(prices, date).map(({ all, ...period }) => {
    const written = all.map((price) => withHour(writtenOf(price), models));
    const [first, ...others] = written.filter((each) => each !== null);
    if (!first || others.length + 1 < written.length) return { ...subject, ...period };
    return { ...subject, ...others.reduce(higherOf, first), ...(context !== undefined && { context }), ...period };
  });
}

/** What is valid on the day of the list or later. Of the prices by time of day, all are in the period. */
function periodsOf(prices: ModelInfo['prices'], date: string): { validFrom?: string; all: ModelPrice[] }[] {
  if (!Array.isArray(prices)) return [{ all: [prices] }];
  const byTime = prices.filter(({ constraint }) => constraint && 'start_time' in constraint);
  const byDate = prices
    .filter(({ constraint }) => !constraint || 'start_date' in constraint)
    .map(({ constraint, prices: own }) => ({
      validFrom: constraint && 'start_date' in constraint ? constraint.start_date : '',
      all: [own, ...byTime.map((each) => each.prices)],
    }));
  const first = byDate.findLastIndex(({ validFrom }) => validFrom <= date);
  return byDate.slice(first).map(({ validFrom, all }, at) => (at === 0 ? { all } : { validFrom, all }));
}

/** Patterns of the same names, as far as there are. Those that differ only in a date are not needed: models are found without it. */
function patternsOf(match: MatchLogic): string[] {
  if ('or' in match) return match.or.flatMap(patternsOf);
  if ('and' in match) return match.and.flatMap(patternsOf);
  if ('equals' in match) return [match.equals];
  if ('starts_with' in match) return [`${match.starts_with}*`];
  if ('ends_with' in match) return [`*${match.ends_with}`];
  return 'contains' in match ? [`*${match.contains}*`] : [];
}

type Written = WrittenAmounts & Pick<WrittenPrice, 'tiers'>;

/** @returns null if the price cannot be counted in tokens. */
function writtenOf(price: ModelPrice): Written | null {
  const given = Object.entries(price).filter(([name]) => !isLeftOut(name, price));
  if (price.input_mtok === undefined) return null;
  const written: WrittenAmounts = {};
  const tiers = new Map<number, WrittenAmounts>();
  for (const [name, amount] of given) {
    if (name === PER_THOUSAND_REQUESTS && typeof amount === 'number') {
      written.perRequest = decimal(amount / 1_000);
      continue;
    }
    const member = AMOUNTS[name];
    if (member === undefined) return null;
    if (amount === undefined) continue;
    written[member] = decimal(typeof amount === 'number' ? amount : amount.base);
    for (const { start, price: above } of typeof amount === 'number' ? [] : amount.tiers) {
      const tier = tiers.get(start) ?? {};
      tier[member] = decimal(above);
      tiers.set(start, tier);
    }
  }
  written.output ??= '0';
  if (tiers.size === 0) return written;
  const list = [...tiers].map(([aboveInputTokens, amounts]) => ({ aboveInputTokens, ...amounts }));
  return { ...written, tiers: list };
}

/** The package has the price of an hour in the cache for Anthropic itself. Others who offer Claude ask for twice the input as well. */
function withHour(written: Written | null, models: readonly string[]): Written | null {
  if (!written?.cacheWrite || written.cacheWrite1h || !models.some((model) => model.includes('claude'))) return written;
  const hourOf = ({ input = written.input ?? '0' }: WrittenAmounts) => decimal(2 * Number(input));
  const tiers = written.tiers?.map((tier) => ({ ...tier, cacheWrite1h: hourOf(tier) }));
  return { ...written, cacheWrite1h: hourOf(written), ...(tiers && { tiers }) };
}

const isLeftOut = (name: string, price: ModelPrice) =>
  LEFT_OUT.test(name) || (price.output_audio_mtok !== undefined && LEFT_OUT_WITH_AUDIO.test(name));

/** The higher of each amount. */
function higherOf(one: Written, other: Written): Written {
  if (one.tiers ?? other.tiers) throw new Error('a price with tiers by time of day');
  const members = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof WrittenAmounts>;
  return Object.fromEntries(
    [...members].map((member) => {
      const [a = '0', b = '0'] = [one[member], other[member]];
      return [member, Number(a) > Number(b) ? a : b];
    }),
  );
}

const MICRO = 1_000_000;

/** With at most six places after the point, rounded up. */
function decimal(amount: number): string {
  const nano = nanoFrom(amount);
  if (nano === null) throw new Error(`${amount} is no price`);
  const micro = Math.ceil(nano / 1_000);
  const part = String(micro % MICRO)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${Math.floor(micro / MICRO)}${part && '.'}${part}`;
}
