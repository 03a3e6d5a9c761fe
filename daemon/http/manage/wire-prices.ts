/** Conversion of prices between the core's values and the shapes of daemon/api. */
import type { WirePrice, WirePriceLists } from '../../api/contract.js';
import type { CostLine } from '../../core/cost/costing.js';
import type { PriceLists } from '../../core/cost/costs.js';
import type { Amounts, Price } from '../../core/cost/prices.js';

export function wirePriceLists({ shipped, file }: PriceLists): WirePriceLists {
  const { source, date, sha256 } = shipped;
  return { shipped: { source, date, sha256 }, file: file && { entries: file.prices.length, sha256: file.sha256 } };
}

export const wirePrice = (price: Price): WirePrice => ({
  model: price.model,
  provider: price.provider,
  source: price.source,
  ...wireAmounts(price),
  max_output: price.maxOutput,
  context: price.context,
  part_tokens: price.partTokens,
  tiers: price.tiers.map((tier) => ({ above_input_tokens: tier.aboveInputTokens, ...wireAmounts(tier) })),
  valid_from: price.validFromMs === null ? null : new Date(price.validFromMs).toISOString(),
});

const wireAmounts = (amounts: Amounts) => ({
  input: perMillion(amounts.input),
  output: perMillion(amounts.output),
  cache_read: orNull(amounts.cacheRead),
  cache_write: orNull(amounts.cacheWrite),
  cache_write_1h: orNull(amounts.cacheWrite1h),
  reasoning: orNull(amounts.reasoning),
  audio_input: orNull(amounts.audioInput),
  audio_output: orNull(amounts.audioOutput),
  per_request: decimalOf(amounts.perRequest, USD_PLACES),
});

/** Pico-USD in a dollar, and per token in a dollar per million. */
const USD_PLACES = 12;
const MILLION_PLACES = 6;

const perMillion = (pico: bigint) => decimalOf(pico, MILLION_PLACES);
const orNull = (pico: bigint | null) => (pico === null ? null : perMillion(pico));

/** @param places of the decimal number that `units` is a multiple of. */
function decimalOf(units: bigint, places: number): string {
  const digits = String(units).padStart(places + 1, '0');
  const part = digits.slice(-places).replace(/0+$/, '');
  return `${digits.slice(0, -places)}${part && '.'}${part}`;
}

export const wireCostLine = ({ kind, count, picoEach, pico }: CostLine) => ({
  kind,
  count,
  usd_each: kind === 'request' ? decimalOf(picoEach, USD_PLACES) : perMillion(picoEach),
  usd: decimalOf(pico, USD_PLACES),
});
