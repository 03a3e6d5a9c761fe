/** What the requests of a project cost, at the prices of its provider. */
import type { UpstreamAuth } from '../../api/vocabulary.js';
import type { DetailedUsage } from '../events.js';
import { costOf, isFree } from './costing.js';
import { pricedProviderOf, REPORTS_COST } from './priced-providers.js';
import type { Price, PriceBook } from './prices.js';

/** Whose prices are valid, as a pass has them. */
export interface PricedUpstream {
  /** Null: the daemon's `UPSTREAM_BASE_URL`. */
  upstreamBaseUrl: string | null;
  upstreamAuth: UpstreamAuth;
  /** The provider of `upstreamBaseUrl`, if that is not null. */
  readonly pricedProvider: string | null;
}

export class Costs {
  readonly prices: PriceBook;
  readonly #defaultProvider: string | null;

  /** @param defaultUpstream `UPSTREAM_BASE_URL`. */
  constructor(prices: PriceBook, defaultUpstream: string) {
    this.prices = prices;
    this.#defaultProvider = pricedProviderOf(defaultUpstream, 'bearer');
  }

  /** The provider whose prices are valid; null if it is not known. */
  providerOf({ upstreamBaseUrl, pricedProvider }: PricedUpstream): string | null {
    return upstreamBaseUrl === null ? this.#defaultProvider : pricedProvider;
  }

  /** @param model null if it is not known. @returns null if there is no price. */
  priceOf(upstream: PricedUpstream, model: string | null, timeMs: number): Price | null {
    return model === null ? null : this.prices.priceOf(model, this.providerOf(upstream), timeMs);
  }

  /**
   * What a request has cost that ran a model.
   *
   * @param usage null if the provider reported none.
   * @returns nano-USD; null if it is not known.
   */
  costOf(upstream: PricedUpstream, model: string | null, usage: DetailedUsage | null, timeMs: number): number | null {
    const reported = usage?.reportedNano ?? null;
    if (reported !== null && this.providerOf(upstream) === REPORTS_COST) return reported;
    const price = this.priceOf(upstream, model, timeMs);
    if (price === null) return null;
    if (usage === null) return isFree(price) ? 0 : null;
    return costOf(price, usage);
  }
}
