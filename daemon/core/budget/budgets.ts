/**
 * # Budgets
 *
 * A request whose token or project has a budget reserves what it may cost before it is forwarded, and is charged when it has ended. Purses
 * (purses.ts) hold the counts, and what this instance has leased of each budget.
 *
 * | mode     | reserves                                                 | refuses                                      |
 * | -------- | -------------------------------------------------------- | -------------------------------------------- |
 * | `hard`   | the bound: the most that the request can cost (bound.ts) | requests that do not fit, or have no bound   |
 * | `soft`   | an estimate from recent requests of the token            | all requests, once nothing is left           |
 * | `shadow` | an estimate, if the lease has it                         | none; publishes what `soft` would refuse     |
 *
 * **Charges.** A request is charged what the provider reports. Without a report, `hard` charges the bound, and the other modes the estimate. If
 * the response was cut, they charge the estimate in addition to the input. A request that the provider refused, or never received, is not charged.
 *
 * All requests are charged, also those without a budget, so that what was spent is known everywhere.
 */
import { BUDGET_THRESHOLDS, BUDGET_UNITS, type BudgetUnit } from '../../api/vocabulary.js';
import type { Pass } from '../account.js';
import { costOf, mostFor } from '../cost/costing.js';
import type { Costs } from '../cost/costs.js';
import type { Price } from '../cost/prices.js';
import type { BudgetEvent, BudgetEventKind, ModelUsage } from '../events.js';
import { LogThrottle } from '../log-throttle.js';
import type { Clock, Log } from '../ports.js';
import { CountsByName } from '../recent-counts.js';
import { type Refusal, unavailable } from '../refusal.js';
import { DATABASE_WAIT_MS, withDatabaseTimeout } from '../timing.js';
import type { Bound, Boundless, ModelLimits } from './bound.js';
import type { Assumed, BudgetHold, ExpectedCost, HeldPart, OwnedBudget } from './owned-budget.js';
import { type Amount, nothing } from './counts.js';
import type { MoreResult } from './purse.js';
import type { Purses } from './purses.js';
import { costNotBounded, exhausted, type Misfit, modelNotPriced, reserved } from './refusals.js';
import { type Spent, spentIn, usedIn } from './spending.js';

/** What a request may spend. Its budgets are those of the moment at which it is forwarded. */
export interface Spending {
  /** As the request names it; null: it names none. It is looked for in the body. */
  model: () => string | null;
  /** Size of its body. */
  bytes: number;
  bound: (limitsOf: (model: string) => ModelLimits | null) => Bound | Boundless;
}

/**
 * How a request that may have spent something has ended. `unspent`: it has not. `answered`: one answer was complete, when its usage came. `cut`: the
 * usage, if there is one, may be only a part.
 */
export interface Ending {
  kind: 'unspent' | 'complete' | 'answered' | 'cut';
  usage: ModelUsage | null;
  /** Null if it is unknown. */
  costNano: number | null;
  /** In ms since the epoch. */
  admittedAtMs: number;
}

export interface BudgetsOptions {
  purses: Purses;
  clock: Clock;
  log: Log;
  costs: Pick<Costs, 'priceOf'>;
  publish: (event: BudgetEvent) => void;
}

/** The estimate for a model without samples. */
const USUAL_TOKENS = 1_000;
/** From this number of samples of a token and model on, the estimate is theirs, not that of the model. */
const ENOUGH_SAMPLES = 20;
const MAX_ESTIMATES = 10_000;
/** How often other requests may take what was granted first. */
const MAX_ATTEMPTS = 10;
const BYTES_PER_TOKEN = 4;
const EVENT_EVERY_MS = 60_000;
const MAX_TOLD = 10_000;
const LOG_EVERY_MS = 60_000;
/** Clients are warned when less than this share of a budget is left. */
const WARNING_DIVISOR = 10;

export class Budgets {
  readonly #options: BudgetsOptions;
  /** Tokens that requests have used, by token and model, and by project and model: no provider or client raises the estimates of other projects. */
  readonly #ofTokens = new CountsByName(MAX_ESTIMATES);
  readonly #ofProjects = new CountsByName(MAX_ESTIMATES);
  /** Shadow budgets whose lease was too small for requests, by the ID of their token or project. */
  readonly #shadows = new Map<string, Shadow>();
  /** The budgets of requests that were charged here, by the ID of their token or project. */
  readonly #charged = new Map<string, { budget: OwnedBudget; subject: BudgetSubject }>();
  readonly #warnings: LogThrottle<'warn'>;
  /** Number of requests for which a provider has billed more than their bound. */
  overruns = 0;

  constructor(options: BudgetsOptions) {
    this.#options = options;
    this.#warnings = new LogThrottle(options.clock, options.log, LOG_EVERY_MS);
  }

  // ---- before

  /**
   * Reserves what the request may cost in each of its budgets, or nothing in any.
   *
   * @returns a promise only if it has to wait for the database.
   * @throws {Refusal} (or rejects with) `budget_exhausted`, `budget_reserved`, `model_not_priced`, `cost_not_bounded`, `unavailable`.
   */
  reserve(pass: Pass, spending: Spending): BudgetHold | Promise<BudgetHold> {
    const { clock } = this.#options;
    const nowMs = clock.now();
    const hold = this.#wanted(pass, spending, nowMs);
    for (const part of hold.parts) {
      if (this.#mayGoOn(pass, part, nowMs)) continue;
      return withDatabaseTimeout(clock, DATABASE_WAIT_MS, (isLate) => this.#reserveRest(pass, spending, hold, isLate));
    }
    return hold;
  }

  /** Reserves it if that is possible at once. A shadow budget lets the request go on in any case. */
  #mayGoOn(pass: Pass, part: HeldPart, nowMs: number): boolean {
    const { budget, cost } = part;
    part.reservation = this.#options.purses.of(budget.id).tryReserve(cost.needed, budget, nowMs);
    if (part.reservation !== null) return true;
    if (budget.mode !== 'shadow') return false;
    this.#askForShadow(pass, part, nowMs);
    return true;
  }

  async #reserveRest(pass: Pass, spending: Spending, hold: BudgetHold, isLate: () => boolean): Promise<BudgetHold> {
    try {
      const first = hold.parts.findIndex(({ budget, reservation }) => reservation === null && budget.mode !== 'shadow');
      for (const part of hold.parts.slice(first)) {
        const refusal = await this.#reserveOne(pass, spending, part);
        if (refusal !== null) throw refusal;
        if (isLate()) throw unavailable();
      }
      return hold;
    } catch (error) {
      this.release(hold);
      throw error;
    }
  }

  /** @returns why the request is refused; null if the reservation succeeded, or the budget was removed. */
  async #reserveOne(pass: Pass, spending: Spending, part: HeldPart): Promise<Refusal | null> {
    const { clock } = this.#options;
    const { mode, owner } = part.budget;
    for (let attempt = 0; attempt <= MAX_ATTEMPTS; attempt++) {
      if (this.#mayGoOn(pass, part, clock.now())) return null;
      const came = await this.#more(part, clock.now());
      if (came === 'exhausted') return exhausted(this.#misfit(pass, spending, part));
      if (came === 'reserved') break;
      const latest = budgetsNow(pass)?.find((it) => it.owner === owner);
      if (!latest) return null;
      // What it needs depends on the mode.
      part.budget = { ...latest, mode };
    }
    return reserved(this.#misfit(pass, spending, part));
  }

  #more({ budget, cost }: HeldPart, nowMs: number): Promise<MoreResult> {
    return this.#options.purses.more(budget.id, cost.needed, budget, nowMs);
  }

  /** Nobody waits for the answer, also while the database is unavailable: the next request has what is leased then. The requests that come until then have the same one. */
  #askForShadow(pass: Pass, part: HeldPart, nowMs: number): void {
    const shadow = this.#shadowOf(part.budget);
    shadow.asking += 1;
    if (shadow.asking > 1) return;
    void this.#more(part, nowMs).then(
      (came) => {
        if (came !== 'granted') this.#wouldHaveRefused(pass, part.budget, shadow);
        shadow.asking = 0;
      },
      () => {
        shadow.asking = 0;
      },
    );
  }

  #shadowOf({ id }: OwnedBudget): Shadow {
    const shadow = this.#shadows.get(id) ?? { asking: 0, refused: 0, toldAtMs: -Infinity };
    remember(this.#shadows, id, shadow);
    return shadow;
  }

  #spentOf({ id, period }: OwnedBudget, nowMs: number): Spent {
    const purse = this.#options.purses.known(id);
    return spentIn(purse?.counts ?? null, purse, period, nowMs);
  }

  #misfit(pass: Pass, spending: Spending, { budget, cost: { needed } }: HeldPart): Misfit {
    const nowMs = this.#options.clock.now();
    const spent = this.#spentOf(budget, nowMs);
    const fittingOutput = budget.mode === 'hard' ? this.#fittingOutput(pass, spending, budget, spent) : null;
    return { budget, spent, needed, fittingOutput, nowMs };
  }

  #fittingOutput(pass: Pass, spending: Spending, { limitNano, limitTokens }: OwnedBudget, used: Amount): number {
    const { bound, price } = this.#boundOf(pass, spending, this.#options.clock.now());
    if (bound === null) return 0;
    const { inputTokens, outputTokens } = bound;
    const fits = (output: number) =>
      (limitTokens === null || used.tokens + inputTokens + output <= limitTokens) &&
      (limitNano === null || (price !== null && used.nano + mostFor(price, inputTokens, output) <= limitNano));
    return largest(outputTokens, fits);
  }

  /** What the request may cost in each of its budgets. Reserves nothing yet. */
  #wanted(pass: Pass, spending: Spending, nowMs: number): BudgetHold {
    let estimate: ExpectedCost | null = null;
    const parts: HeldPart[] = [];
    for (const budget of budgetsNow(pass) ?? []) {
      const cost =
        budget.mode === 'hard'
          ? this.#bounded(pass, spending, budget, nowMs)
          : (estimate ??= this.#estimate(pass, spending, nowMs));
      parts.push({ budget, cost, reservation: null });
    }
    return { admittedAtMs: nowMs, learns: estimate && { model: spending.model() ?? '' }, parts };
  }

  #bounded(pass: Pass, spending: Spending, budget: OwnedBudget, nowMs: number): ExpectedCost {
    const needsPrice = budget.limitNano !== null;
    const { bound, price, why } = this.#boundOf(pass, spending, nowMs);
    if (bound === null) {
      const model = needsPrice ? spending.model() : null;
      if (model !== null && !this.#options.costs.priceOf(pass, model, nowMs)) throw modelNotPriced(model, budget);
      throw costNotBounded(why, budget);
    }
    if (needsPrice && price === null) throw modelNotPriced(bound.model, budget);
    const most = mostOf(bound, price);
    return { needed: neededFor(most), hasSeveral: bound.answers > 1, ifUnreported: most, ifCut: most };
  }

  #boundOf(pass: Pass, spending: Spending, nowMs: number): { bound: Bound | null; price: Price | null; why: string } {
    const { costs } = this.#options;
    const bound = spending.bound((model) => costs.priceOf(pass, model, nowMs));
    if ('why' in bound) return { bound: null, price: null, why: bound.why };
    return { bound, price: costs.priceOf(pass, bound.model, nowMs), why: '' };
  }

  #estimate(pass: Pass, spending: Spending, nowMs: number): ExpectedCost {
    const model = spending.model();
    const input = Math.ceil(spending.bytes / BYTES_PER_TOKEN);
    const usual = this.#usualTokens(pass, model ?? '');
    const price = this.#options.costs.priceOf(pass, model, nowMs);
    const whole = Math.max(usual, input);
    const usually = { tokens: whole, nano: price && plainCost(price, input, whole - input) };
    const most = this.#chargedBound(pass, spending, nowMs);
    return {
      needed: neededFor(usually),
      hasSeveral: false,
      ifUnreported: most ?? usually,
      ifCut: most ?? { tokens: input + usual, nano: price && plainCost(price, input, usual) },
    };
  }

  /** With `missing_usage: bound`, a request without a report is charged its bound; null if it has none. */
  #chargedBound(pass: Pass, spending: Spending, nowMs: number): Assumed | null {
    if (pass.missingUsage !== 'bound') return null;
    const { bound, price } = this.#boundOf(pass, spending, nowMs);
    return bound && mostOf(bound, price);
  }

  #usualTokens({ tokenId, projectId }: Pass, model: string): number {
    const own = this.#ofTokens.get(tokenId, model);
    if (own && own.size >= ENOUGH_SAMPLES) return own.percentile;
    return this.#ofProjects.get(projectId, model)?.percentile ?? USUAL_TOKENS;
  }

  // ---- after

  /** The request has spent nothing: releases its reservations. */
  release(hold: BudgetHold): void {
    for (const part of hold.parts) {
      if (part.reservation) this.#options.purses.release(part.reservation);
      part.reservation = null;
    }
  }

  /** The request was never forwarded: releases its reservations. */
  takeBack(pass: Pass): void {
    const hold = pass.held?.pop();
    if (hold) this.release(hold);
  }

  /** A use of this pass has ended: the oldest one, if there are several. Call it once for each use. */
  settle(pass: Pass, ending: Ending): void {
    const hold = pass.held?.shift() ?? null;
    if (ending.kind === 'unspent') {
      if (hold) this.release(hold);
      return;
    }
    const counted = countedTokens(ending.usage);
    this.#charge(pass, hold, ending, counted);
    if (hold?.learns && ending.kind !== 'cut') this.#learn(pass, hold.learns.model, counted.total);
  }

  /**
   * Charges what was used without a reservation.
   *
   * @returns why nothing more may be used; null if more may.
   */
  chargeMore(pass: Pass, ending: Ending): Refusal | null {
    this.#charge(pass, null, ending, countedTokens(ending.usage));
    const nowMs = this.#options.clock.now();
    for (const budget of budgetsNow(pass) ?? []) {
      if (budget.mode === 'shadow' || this.#shareLeft(budget, nowMs) > 0) continue;
      const spent = this.#spentOf(budget, nowMs);
      return exhausted({ budget, spent, needed: nothing(), fittingOutput: null, nowMs });
    }
    return null;
  }

  /** Charges the token and its project. */
  #charge(pass: Pass, hold: BudgetHold | null, ending: Ending, counted: CountedTokens): void {
    for (const budget of budgetsNow(pass) ?? []) {
      if (this.#charged.get(budget.id)?.budget !== budget)
        remember(this.#charged, budget.id, { budget, subject: subjectOf(pass, budget) });
    }
    this.#chargeTo(pass.tokenId, pass, hold, ending, counted);
    this.#chargeTo(pass.projectId, pass, hold, ending, counted);
  }

  #chargeTo(id: string, pass: Pass, hold: BudgetHold | null, ending: Ending, counted: CountedTokens): void {
    let part: HeldPart | null = null;
    if (hold) for (const each of hold.parts) if (each.budget.id === id) part = each;
    const charge = chargeFor(ending, counted, part);
    const reservation = part?.reservation ?? null;
    this.#options.purses.charge(id, hold?.admittedAtMs ?? ending.admittedAtMs, charge, reservation);
    if (part?.budget.mode === 'hard' && reservation) this.#checkOverrun(pass, part, charge);
  }

  #checkOverrun(pass: Pass, { budget, cost: { needed } }: HeldPart, { nano, tokens }: Assumed): void {
    const { limitNano, limitTokens, owner } = budget;
    const isOver =
      (limitNano !== null && (nano ?? 0) > needed.nano) || (limitTokens !== null && tokens > needed.tokens);
    if (!isOver) return;
    this.overruns += 1;
    this.#warnings.record(
      'warn',
      'a provider has billed more than the bound of a request with a hard budget',
      (count) => ({
        requests: count,
        owner,
        tokenId: pass.tokenId,
        projectId: pass.projectId,
        bound: needed,
        billed: { nano, tokens },
      }),
    );
  }

  #learn({ tokenId, projectId }: Pass, model: string, tokens: number | null): void {
    if (tokens === null || tokens === 0) return;
    this.#ofTokens.add(tokens, tokenId, model);
    this.#ofProjects.add(tokens, projectId, model);
  }

  // ---- what operators and clients are told

  /** A warning for the client, such as `budget-left=4%`; null while a tenth or more of each budget is left, and without a budget. */
  warning(pass: Pass): string | null {
    const { budgets } = pass;
    if (budgets === null) return null;
    const nowMs = this.#options.clock.now();
    let least = 1;
    for (const budget of budgets) if (budget.mode !== 'shadow') least = Math.min(least, this.#shareLeft(budget, nowMs));
    return least * WARNING_DIVISOR < 1 ? `budget-left=${Math.floor(100 * least)}%` : null;
  }

  /** The smaller of the shares that are left of its limits. */
  #shareLeft(budget: OwnedBudget, nowMs: number): number {
    // No purse in memory: nothing is known of it, as of an empty one.
    const purse = this.#options.purses.known(budget.id);
    if (purse === undefined) return 1;
    purse.needsCounts = true;
    const { nano, tokens } = usedIn(purse.counts, purse, budget.period, nowMs);
    return Math.min(shareLeft(budget.limitNano, nano), shareLeft(budget.limitTokens, tokens));
  }

  /** At most one event in a minute for each budget. */
  #wouldHaveRefused(pass: Pass, budget: OwnedBudget, shadow: Shadow): void {
    const { clock } = this.#options;
    shadow.refused += shadow.asking;
    if (clock.monotonic() - shadow.toldAtMs < EVENT_EVERY_MS) return;
    const used = this.#spentOf(budget, clock.now());
    const isOfMoney = budget.limitNano !== null && (budget.limitTokens === null || used.nano >= budget.limitNano);
    const whole = amountsOf(budget, isOfMoney ? 'usd' : 'tokens', used);
    this.#publish('budget.would_refuse', subjectOf(pass, budget), shadow.refused, { ...whole, percent: null });
    shadow.toldAtMs = clock.monotonic();
    shadow.refused = 0;
  }

  /** The database has counted what was charged here. */
  spent(id: string, before: Amount, after: Amount): void {
    const charged = this.#charged.get(id);
    if (!charged) return;
    const { budget, subject } = charged;
    for (const unit of BUDGET_UNITS) {
      const whole = amountsOf(budget, unit, after);
      const { used: usedBefore } = amountsOf(budget, unit, before);
      for (const percent of BUDGET_THRESHOLDS) {
        const isAt = (used: number) => used * 100 >= whole.limit * percent;
        if (whole.limit > 0 && !isAt(usedBefore) && isAt(whole.used))
          this.#publish('budget.threshold', subject, null, { ...whole, percent });
      }
    }
  }

  #publish(kind: BudgetEventKind, subject: BudgetSubject, count: number | null, budget: BudgetEvent['budget']): void {
    this.#options.publish({ kind, timeMs: this.#options.clock.now(), ...subject, count, budget });
  }
}

type BudgetSubject = Pick<BudgetEvent, 'projectId' | 'projectName' | 'tokenId' | 'tokenName'>;

const subjectOf = (pass: Pass, { owner, id }: OwnedBudget): BudgetSubject => ({
  projectId: pass.projectId,
  projectName: pass.projectName,
  tokenId: owner === 'token' ? id : null,
  tokenName: owner === 'token' ? pass.tokenName : null,
});

/** @returns a limit of 0 if the budget has none in this unit. */
function amountsOf({ owner, mode, period, limitNano, limitTokens }: OwnedBudget, unit: BudgetUnit, used: Amount) {
  const of = { owner, mode, period, unit };
  return unit === 'usd'
    ? { ...of, limit: limitNano ?? 0, used: used.nano }
    : { ...of, limit: limitTokens ?? 0, used: used.tokens };
}

/** The budgets that apply to what begins now. */
export const budgetsNow = ({ account, budgets }: Pass): readonly OwnedBudget[] | null =>
  account.known ? account.known.budgets : budgets;

/** A shadow budget whose lease was too small for a request. */
interface Shadow {
  /** Requests that passed since it was asked whether it has more; 0: it is not asked. */
  asking: number;
  /** Requests that it would have refused since the last event. */
  refused: number;
  /** When that was published (monotonic). */
  toldAtMs: number;
}

/** Remembers it as the newest of at most `MAX_TOLD`. */
function remember<T>(map: Map<string, T>, id: string, value: T): void {
  map.delete(id);
  map.set(id, value);
  if (map.size > MAX_TOLD) map.delete(map.keys().next().value ?? '');
}

const mostOf = ({ inputTokens, outputTokens }: Bound, price: Price | null): Assumed => ({
  nano: price && mostFor(price, inputTokens, outputTokens),
  tokens: inputTokens + outputTokens,
});

const neededFor = ({ nano, tokens }: Assumed): Amount => ({ nano: nano ?? 0, tokens });

const NOTHING_KNOWN: Assumed = { nano: null, tokens: 0 };

/** The charge is never less than what the provider reports. */
function chargeFor({ kind, costNano }: Ending, { total, atLeast }: CountedTokens, part: HeldPart | null): Assumed {
  const isCut = kind === 'cut' || (kind === 'answered' && part?.cost.hasSeveral === true);
  // Some servers report zeros for what they have not counted. No model runs without a token.
  const isUncounted = total === 0 && part?.budget.mode === 'hard';
  const isKnown = !isCut && !isUncounted;
  const assumed = part === null ? NOTHING_KNOWN : isCut ? part.cost.ifCut : part.cost.ifUnreported;
  return {
    nano: costNano !== null && isKnown ? costNano : larger(assumed.nano, costNano),
    tokens: total !== null && isKnown ? total : Math.max(assumed.tokens, atLeast),
  };
}

const larger = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

interface CountedTokens {
  /** All tokens of a request; null if a count is missing. */
  total: number | null;
  /** The sum of the known counts. */
  atLeast: number;
}

function countedTokens(usage: ModelUsage | null): CountedTokens {
  if (usage === null) return { total: null, atLeast: 0 };
  const { promptTokens: prompt, completionTokens: completion, totalTokens: total } = usage;
  const sum = (prompt ?? 0) + (completion ?? 0);
  const isWhole = prompt !== null && completion !== null;
  // A reported total may leave out reasoning.
  if (total !== null) return { total: Math.max(total, sum), atLeast: Math.max(total, sum) };
  return { total: isWhole ? sum : null, atLeast: sum };
}

const plainCost = (price: Price, promptTokens: number, completionTokens: number): number | null =>
  costOf(price, {
    promptTokens,
    completionTokens,
    totalTokens: null,
    cacheReadTokens: null,
    cacheWriteTokens: null,
    cacheWrite1hTokens: null,
    reasoningTokens: null,
    audioInputTokens: null,
    audioOutputTokens: null,
    reportedNano: null,
  });

const shareLeft = (limit: number | null, used: number) => (limit === null ? 1 : Math.max(0, limit - used) / limit);

/** The largest number up to `most` that fits, by bisection; 0 if none does. */
function largest(most: number, fits: (value: number) => boolean): number {
  if (fits(most)) return most;
  let [low, high] = [0, most];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
