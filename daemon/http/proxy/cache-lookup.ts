import { isNotModified } from '../../core/cache/caching.js';
import type { FreshResponse, ResponseCache } from '../../core/cache/response-cache.js';
import type { Pass } from '../../core/account.js';
import type { StoredResponse } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import { CacheTransaction, type CacheRequest, type CacheClient } from '../../core/cache-transaction.js';
import { unlessEnded } from './admit.js';
import type { OpenExchange } from './open-exchange.js';

/**
 * The cache's part of an exchange: responds from the cache, or from an identical request in flight (request coalescing), or else forwards
 * the request.
 */
export class CacheLookup implements CacheClient {
  readonly #exchange: OpenExchange;
  readonly #cache: ResponseCache;
  readonly #pass: Pass;
  readonly #transaction: CacheTransaction;
  #replayed: StoredResponse | null = null;
  /** Whether the response to an identical request is awaited. */
  #isWaiting = false;

  constructor(exchange: OpenExchange, cache: ResponseCache, facts: CacheRequest, pass: Pass) {
    this.#exchange = exchange;
    this.#cache = cache;
    this.#pass = pass;
    this.#transaction = new CacheTransaction(cache, facts, this);
  }

  begin(): void {
    this.#transaction.begin();
  }

  wait(): void {
    this.#isWaiting = true;
    this.#exchange.timeouts.waitForSharedResponse(() => {
      this.#transaction.stopWaiting();
    });
  }

  /** Stops waiting for the response to an identical request. @returns false if it did not wait. */
  stopWaiting(): boolean {
    if (!this.#isWaiting) return false;
    this.#transaction.stopWaiting();
    return true;
  }

  stopPacing(): void {
    this.#exchange.resume();
  }

  forward(): void {
    this.#isWaiting = false;
    this.#exchange.forward(this.#transaction);
  }

  refuse(refusal: Refusal): void {
    this.#exchange.refuse(refusal);
  }

  replay(fresh: FreshResponse): void {
    this.#isWaiting = false;
    const exchange = this.#exchange;
    if (exchange.hasEnded() || exchange.isForwarded) return;
    exchange.timeouts.pause();
    try {
      const confirming = exchange.options.admission.confirm(this.#pass);
      if (confirming === undefined) {
        this.#send(fresh);
        return;
      }
      const sending = unlessEnded(exchange, confirming).then(() => {
        this.#send(fresh);
      });
      sending.catch((error: unknown) => {
        exchange.refuse(error);
      });
    } catch (error) {
      exchange.refuse(error);
    }
  }

  #send(fresh: FreshResponse): void {
    const cache = this.#cache;
    const exchange = this.#exchange;
    const pass = this.#pass;
    const { admission, clock, unreadResponses } = exchange.options;
    const { response: answer } = fresh;
    const ages = cache.agesOf(fresh);
    if (ages.freshForMs <= 0) {
      this.forward(); // It went stale while this request waited.
      return;
    }
    admission.countHit(pass);
    cache.hits += 1;
    cache.replays.begin(answer);
    this.#replayed = answer;
    const { condition } = this.#transaction;
    const isHeld = condition !== null && isNotModified(condition, answer, clock.now());
    exchange.clientResponse.replay(pass, answer, ages, isHeld, clock.monotonic());
    unreadResponses.watch(exchange.res, true);
  }

  /** This request failed or ended. Requests that wait for its response need another one. */
  quit(): void {
    this.#transaction.quit();
  }

  /** The exchange has ended. */
  close(): void {
    if (this.#replayed) this.#cache.replays.end(this.#replayed);
  }
}
