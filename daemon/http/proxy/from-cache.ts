import { isHeldBy } from '../../core/cache/caching.js';
import type { Fresh, ResponseCache } from '../../core/cache/response-cache.js';
import type { Pass } from '../../core/account.js';
import type { KeptAnswer } from '../../core/ports.js';
import type { Refusal } from '../../core/refusal.js';
import { Visit, type VisitFacts, type Visitor } from '../../core/visit.js';
import { unlessOver } from './admit.js';
import type { OpenExchange } from './open-exchange.js';
import type { ToUpstream } from './to-upstream.js';

/** The cache's part of an exchange: the answer comes from there, or from another request that is being answered, or the upstream is asked. */
export class FromCache implements Visitor {
  readonly #exchange: OpenExchange;
  readonly #cache: ResponseCache;
  readonly #pass: Pass;
  readonly #upstream: ToUpstream;
  readonly #visit: Visit;
  #sent: KeptAnswer | null = null;

  constructor(exchange: OpenExchange, cache: ResponseCache, facts: VisitFacts, pass: Pass, upstream: ToUpstream) {
    this.#exchange = exchange;
    this.#cache = cache;
    this.#pass = pass;
    this.#upstream = upstream;
    this.#visit = new Visit(cache, facts, this);
  }

  begin(): void {
    this.#visit.begin();
  }

  wait(): void {
    this.#exchange.turn.waitForAnother(() => {
      this.#visit.stopWaiting();
    });
  }

  hurry(): void {
    this.#upstream.resume();
  }

  ask(): void {
    this.#upstream.ask(this.#visit);
  }

  refuse(refusal: Refusal): void {
    this.#exchange.refuse(refusal);
  }

  replay(fresh: Fresh): void {
    const exchange = this.#exchange;
    if (exchange.isOver() || this.#upstream.isAsked) return;
    exchange.turn.waitForNobody();
    try {
      const confirming = exchange.options.admission.confirm(this.#pass);
      if (confirming === undefined) {
        this.#send(fresh);
        return;
      }
      const sending = unlessOver(exchange, confirming).then(() => {
        this.#send(fresh);
      });
      sending.catch((error: unknown) => {
        exchange.refuse(error);
      });
    } catch (error) {
      exchange.refuse(error);
    }
  }

  #send(fresh: Fresh): void {
    const cache = this.#cache;
    const exchange = this.#exchange;
    const pass = this.#pass;
    const { admission, clock, untaken } = exchange.options;
    const { answer } = fresh;
    const ages = cache.agesOf(fresh);
    if (ages.freshForMs <= 0) {
      this.ask(); // It was waited for too long.
      return;
    }
    admission.countHit(pass);
    cache.hits += 1;
    cache.room.send(answer);
    this.#sent = answer;
    const { condition } = this.#visit;
    const isHeld = condition !== null && isHeldBy(condition, answer, clock.now());
    exchange.answering.replay(pass, answer, ages, isHeld, clock.monotonic());
    untaken.watch(exchange.res, true);
  }

  /** The answer is not to be had, or not needed any more: whoever waits for it gets another's. */
  quit(): void {
    this.#visit.quit();
  }

  /** The exchange is over. */
  close(): void {
    if (this.#sent) this.#cache.room.sent(this.#sent);
  }
}
