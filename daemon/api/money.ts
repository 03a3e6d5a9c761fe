/**
 * Amounts of money. They are counted in nano-USD (10^-9 USD) as whole numbers, which JavaScript has exactly up to nine million dollars, and
 * are decimal strings on the wire. Prices per token are smaller: they are pico-USD (10^-12 USD) as `bigint`. Nothing is a fraction.
 */

export const NANO_PER_USD = 1_000_000_000;
const NANO_DIGITS = 9;
/** Maximum of the cost of one request, of a budget and of a sum: 9,000,000 USD. */
export const MAX_NANO = 9_000_000 * NANO_PER_USD;
/** Maximum of a budget, and its places after the point. */
export const MAX_BUDGET_USD = 1_000_000;
export const BUDGET_PLACES = 6;

/** A sum of two amounts, limited to what is exact. */
export const addedNano = (one: number, other: number): number => Math.min(MAX_NANO, one + other);

/**
 * @param text a decimal number such as `25.00`.
 * @returns nano-USD, or null for another text, more than nine places after the point or more than `MAX_NANO`.
 */
export function nanoOf(text: string): number | null {
  const [, whole, part = ''] = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) return null;
  const nano = Number(whole) * NANO_PER_USD + Number(part.padEnd(NANO_DIGITS, '0'));
  return nano <= MAX_NANO ? nano : null;
}

/** The exact amount, with at least two places after the point: `25.00`, `0.000001234`. */
export function usdOf(nano: number): string {
  const part = String(nano % NANO_PER_USD).padStart(NANO_DIGITS, '0');
  return `${Math.floor(nano / NANO_PER_USD)}.${part.replace(/0{1,7}$/, '')}`;
}

/**
 * The cost of several requests, as the reports of the API have it.
 *
 * @param costNano sum of the known costs.
 * @param unpriced number of requests whose cost is unknown.
 * @returns a decimal string; null if there are such requests, and the known costs are 0.
 */
export const summedUsd = (costNano: number, unpriced: number): string | null =>
  costNano === 0 && unpriced > 0 ? null : usdOf(Math.min(MAX_NANO, costNano));

/**
 * An amount of the API for people: `$12.35`, `$0.0042`, `<$0.0001`.
 *
 * @param usd a decimal string of the API; null if it is unknown.
 */
export function usdShown(usd: string | null): string {
  if (usd === null) return 'unknown';
  const nano = nanoOf(usd) ?? MAX_NANO;
  if (nano === 0) return '$0';
  if (nano < 100_000) return '<$0.0001';
  const places = nano < NANO_PER_USD ? 4 : 2;
  const unit = 10 ** (NANO_DIGITS - places);
  const units = Math.round(nano / unit);
  const part = String(units % 10 ** places).padStart(places, '0');
  return `$${Math.floor(units / 10 ** places).toLocaleString('en-US')}.${part}`;
}

/** What several requests cost, as the reports of the API have it. */
export interface Cost {
  /** The sum of the known costs; null if none is known. */
  cost_usd: string | null;
  /** Number of requests whose cost is unknown. */
  unpriced_requests: number;
}

/** For people: `$12.35`; `$12.35+` if the cost of further requests is unknown; `unknown` if no cost is known. */
export const costShown = ({ cost_usd: usd, unpriced_requests: unpriced }: Cost): string =>
  usd !== null && unpriced > 0 ? `${usdShown(usd)}+` : usdShown(usd);

/** For sorting, in nano-USD: an unknown cost is 0. */
export const nanoOfCost = ({ cost_usd: usd }: Pick<Cost, 'cost_usd'>): number =>
  usd === null ? 0 : (nanoOf(usd) ?? MAX_NANO);

export function sumOfCosts(costs: readonly Cost[]): Cost {
  const unpriced = costs.reduce((sum, { unpriced_requests: count }) => sum + count, 0);
  return {
    cost_usd: summedUsd(
      costs.reduce((sum, cost) => addedNano(sum, nanoOfCost(cost)), 0),
      unpriced,
    ),
    unpriced_requests: unpriced,
  };
}
