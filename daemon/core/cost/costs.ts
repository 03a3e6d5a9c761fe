/** Costs of the requests of a project, at the prices of its provider. */
import type { UpstreamAuth } from '../../api/vocabulary.js';
import type { DetailedUsage } from '../events.js';
import { costOf, isFree } from './costing.js';
import { pricedProviderOf, REPORTS_COST } from './priced-providers.js';
import { type Price, PriceBook, type WrittenPrice } from './prices.js';

/** A price list that was read. */
export interface PriceList {
  sha256: string;
  prices: readonly WrittenPrice[];
}

/** The lists in force. */
export interface PriceLists {
  /** Of this build. */
  shipped: PriceList & {
    /** Package and version that it was made from. */
    source: string;
    /** When the package was published, such as `2026-09-23`. */
    date: string;
  };
  /** `PRICES_FILE`; null if there is none. */
  file: PriceList | null;
}

/** The upstream of a project, which determines the prices. */
export interface PricedUpstream {
  /** Null: the daemon's `UPSTREAM_BASE_URL`. */
  upstreamBaseUrl: string | null;
  upstreamAuth: UpstreamAuth;
  /** The provider of `upstreamBaseUrl`; null if it is unknown, or the URL is null. */
  readonly pricedProvider: string | null;
}

export class Costs {
  readonly prices: PriceBook;
  #lists: PriceLists;
  readonly #defaultProvider: string | null;

  /** @param defaultUpstream `UPSTREAM_BASE_URL`. */
  constructor(lists: PriceLists, defaultUpstream: string) {
    this.#lists = lists;
    this.prices = new PriceBook(lists.file?.prices ?? [], lists.shipped.prices);
    this.#defaultProvider = pricedProviderOf(defaultUpstream, 'bearer');
  }

  get lists(): PriceLists {
    return this.#lists;
  }

  /** Applies another `PRICES_FILE` from now on; null: none. */
  replaceFile(file: PriceList | null): void {
    this.#lists = { ...this.#lists, file };
    this.prices.replace(file?.prices ?? [], this.#lists.shipped.prices);
  }

  /** The provider whose prices apply; null if it is unknown. */
  providerOf({ upstreamBaseUrl, pricedProvider }: PricedUpstream): string | null {
    return upstreamBaseUrl === null ? this.#defaultProvider : pricedProvider;
  }

  /** @param model null if it is unknown. @returns null without a price. */
  priceOf(upstream: PricedUpstream, model: string | null, timeMs: number): Price | null {
    return model === null ? null : this.prices.priceOf(model, this.providerOf(upstream), timeMs);
  }

  /**
   * What a request that ran a model has cost.
   *
   * @param usage null if the provider reported none.
   * @returns nano-USD; null if it is unknown.
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
