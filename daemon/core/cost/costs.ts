/** What the requests of a project cost, at the prices of its provider. */
import type { UpstreamAuth } from '../../api/vocabulary.js';
import type { DetailedUsage } from '../events.js';
import { costOf, isFree } from './costing.js';
import { pricedProviderOf, REPORTS_COST } from './priced-providers.js';
import { type Price, PriceBook, type WrittenPrice } from './prices.js';

/** What was read of a list. */
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
    /** When that was published, such as `2026-09-23`. */
    date: string;
  };
  /** `PRICES_FILE`; null if there is none. */
  file: PriceList | null;
}

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

  /** From now on these prices are valid. @param file `PRICES_FILE`. */
  replaceFile(file: PriceList | null): void {
    this.#lists = { ...this.#lists, file };
    this.prices.replace(file?.prices ?? [], this.#lists.shipped.prices);
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
