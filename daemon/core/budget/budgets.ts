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
import type { Assumed, BudgetHold, HeldPart, OwnedBudget } from './owned-budget.js';
import type { Amount, PurseBudget } from './purse.js';
import type { MoreResult, Purses } from './purses.js';
import { costNotBounded, exhausted, type Misfit, modelNotPriced, reserved } from './refusals.js';

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
  /** Requests that passed while it was asked whether their shadow budget has more, by the ID of its token or project. */
  readonly #asking = new Map<string, number>();
  /** Shadow budgets that would have refused requests: when the last event was published (monotonic), and the number of requests since. */
  readonly #wouldRefuse = new Map<string, { toldAtMs: number; count: number }>();
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
    const { budget, needed } = part;
    part.reservation = this.#purseOf(budget).tryReserve(needed, asReserved(budget), nowMs);
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

  #more({ needed, budget }: HeldPart, nowMs: number): Promise<MoreResult> {
    return this.#options.purses.more(this.#purseOf(budget), needed, asReserved(budget), nowMs);
  }

  /** Nobody waits for the answer, also while the database is unavailable: the next request has what is leased then. The requests that come until then have the same one. */
  #askForShadow(pass: Pass, part: HeldPart, nowMs: number): void {
    const { id } = part.budget;
    const asking = this.#asking.get(id) ?? 0;
    this.#asking.set(id, asking + 1);
    if (asking > 0) return;
    void this.#more(part, nowMs).then(
      (came) => {
        const requests = this.#asking.get(id) ?? 1;
        this.#asking.delete(id);
        if (came !== 'granted') this.#wouldHaveRefused(pass, part, requests);
      },
      () => this.#asking.delete(id),
    );
  }

  #purseOf({ id }: OwnedBudget) {
    return this.#options.purses.of(id);
  }

  #misfit(pass: Pass, spending: Spending, { budget, needed }: HeldPart): Misfit {
    const nowMs = this.#options.clock.now();
    const state = this.#purseOf(budget).state(budget, nowMs);
    const fittingOutput = budget.mode === 'hard' ? this.#fittingOutput(pass, spending, budget, state.used) : null;
    return { budget, state, needed, fittingOutput, nowMs };
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
    let estimate: Estimate | null = null;
    const parts: HeldPart[] = [];
    for (const budget of budgetsNow(pass) ?? []) {
      if (budget.mode === 'hard') parts.push(this.#bounded(pass, spending, budget, nowMs));
      else parts.push(estimated(budget, (estimate ??= this.#assumption(pass, spending, nowMs))));
    }
    return { admittedAtMs: nowMs, learns: estimate && { model: spending.model() ?? '' }, parts };
  }

  #bounded(pass: Pass, spending: Spending, budget: OwnedBudget, nowMs: number): HeldPart {
    const needsPrice = budget.limitNano !== null;
    const { bound, price, why } = this.#boundOf(pass, spending, nowMs);
    if (bound === null) {
      const model = needsPrice ? spending.model() : null;
      if (model !== null && !this.#options.costs.priceOf(pass, model, nowMs)) throw modelNotPriced(model, budget);
      throw costNotBounded(why, budget);
    }
    if (needsPrice && price === null) throw modelNotPriced(bound.model, budget);
    const nano = price && mostFor(price, bound.inputTokens, bound.outputTokens);
    const tokens = bound.inputTokens + bound.outputTokens;
    const assumed = { nano, tokens };
    return {
      budget,
      reservation: null,
      needed: { nano: nano ?? 0, tokens },
      hasSeveral: bound.answers > 1,
      ifUnreported: assumed,
      ifCut: assumed,
    };
  }

  #boundOf(pass: Pass, spending: Spending, nowMs: number): { bound: Bound | null; price: Price | null; why: string } {
    const { costs } = this.#options;
    const bound = spending.bound((model) => costs.priceOf(pass, model, nowMs));
    if ('why' in bound) return { bound: null, price: null, why: bound.why };
    return { bound, price: costs.priceOf(pass, bound.model, nowMs), why: '' };
  }

  /** With `missing_usage: bound`, a request without a report is charged its bound, if it has one. */
  #assumption(pass: Pass, spending: Spending, nowMs: number): Estimate {
    const estimate = this.#estimate(pass, spending, nowMs);
    if (pass.missingUsage !== 'bound') return estimate;
    const { bound, price } = this.#boundOf(pass, spending, nowMs);
    if (bound === null) return estimate;
    const { inputTokens, outputTokens } = bound;
    const most = { tokens: inputTokens + outputTokens, nano: price && mostFor(price, inputTokens, outputTokens) };
    return { ...estimate, unreported: most, cut: most };
  }

  #estimate(pass: Pass, spending: Spending, nowMs: number): Estimate {
    const model = spending.model();
    const input = Math.ceil(spending.bytes / BYTES_PER_TOKEN);
    const usual = this.#usualTokens(pass, model ?? '');
    const price = this.#options.costs.priceOf(pass, model, nowMs);
    const whole = Math.max(usual, input);
    const usually = { tokens: whole, nano: price && plainCost(price, input, whole - input) };
    return {
      whole: usually,
      unreported: usually,
      cut: { tokens: input + usual, nano: price && plainCost(price, input, usual) },
    };
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
    if (hold === null && budgetsNow(pass) === null) {
      this.#chargeWithoutBudget(pass, ending);
      return;
    }
    this.#charge(pass, pass.tokenId, hold, ending);
    this.#charge(pass, pass.projectId, hold, ending);
    if (hold?.learns && ending.kind !== 'cut') this.#learn(pass, hold.learns.model, ending.usage);
  }

  #chargeWithoutBudget({ tokenId, projectId }: Pass, ending: Ending): void {
    const { purses } = this.#options;
    const charge = chargeFor(ending, null);
    purses.charge(purses.of(tokenId), ending.admittedAtMs, charge, null);
    purses.charge(purses.of(projectId), ending.admittedAtMs, charge, null);
  }

  /**
   * Charges what was used without a reservation.
   *
   * @returns why nothing more may be used; null if more may.
   */
  chargeMore(pass: Pass, ending: Ending): Refusal | null {
    this.#charge(pass, pass.tokenId, null, ending);
    this.#charge(pass, pass.projectId, null, ending);
    const nowMs = this.#options.clock.now();
    for (const budget of budgetsNow(pass) ?? []) {
      if (budget.mode === 'shadow' || this.#shareLeft(budget, nowMs) > 0) continue;
      const state = this.#purseOf(budget).state(budget, nowMs);
      return exhausted({ budget, state, needed: { nano: 0, tokens: 0 }, fittingOutput: null, nowMs });
    }
    return null;
  }

  #charge(pass: Pass, id: string, hold: BudgetHold | null, ending: Ending): void {
    const { purses } = this.#options;
    let part: HeldPart | null = null;
    for (const each of hold?.parts ?? []) if (each.budget.id === id) part = each;
    for (const budget of budgetsNow(pass) ?? [])
      if (budget.id === id && this.#charged.get(id)?.budget !== budget) this.#remember(pass, budget);
    const charge = chargeFor(ending, part);
    const reservation = part?.reservation ?? null;
    purses.charge(reservation?.purse ?? purses.of(id), hold?.admittedAtMs ?? ending.admittedAtMs, charge, reservation);
    if (part?.budget.mode === 'hard' && reservation) this.#checkOverrun(pass, part, charge);
  }

  #remember(pass: Pass, budget: OwnedBudget): void {
    this.#charged.set(budget.id, { budget, subject: subjectOf(pass, budget) });
    if (this.#charged.size > MAX_TOLD) this.#charged.delete(this.#charged.keys().next().value ?? '');
  }

  #checkOverrun(pass: Pass, { budget, needed }: HeldPart, { nano, tokens }: Assumed): void {
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

  #learn({ tokenId, projectId }: Pass, model: string, usage: ModelUsage | null): void {
    const { total } = tokensIn(usage);
    if (total === null || total === 0) return;
    this.#ofTokens.add(total, tokenId, model);
    this.#ofProjects.add(total, projectId, model);
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
    const { nano, tokens } = this.#purseOf(budget).spending(budget.period, nowMs);
    return Math.min(shareLeft(budget.limitNano, nano), shareLeft(budget.limitTokens, tokens));
  }

  /** At most one event in a minute for each budget. */
  #wouldHaveRefused(pass: Pass, { budget }: HeldPart, requests: number): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    const known = this.#wouldRefuse.get(budget.id) ?? { toldAtMs: -Infinity, count: 0 };
    known.count += requests;
    if (nowMs - known.toldAtMs >= EVENT_EVERY_MS) {
      this.#publishRefusal(pass, budget, known.count);
      known.toldAtMs = nowMs;
      known.count = 0;
    }
    this.#wouldRefuse.delete(budget.id);
    this.#wouldRefuse.set(budget.id, known);
    if (this.#wouldRefuse.size > MAX_TOLD) this.#wouldRefuse.delete(this.#wouldRefuse.keys().next().value ?? '');
  }

  #publishRefusal(pass: Pass, budget: OwnedBudget, count: number): void {
    const { used } = this.#purseOf(budget).state(budget, this.#options.clock.now());
    const isOfMoney = budget.limitNano !== null && (budget.limitTokens === null || used.nano >= budget.limitNano);
    const unit = isOfMoney ? 'usd' : 'tokens';
    this.#publish('budget.would_refuse', subjectOf(pass, budget), count, {
      ...amountsOf(budget, unit, used),
      percent: null,
    });
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

/** A shadow budget reserves like a soft one, to find out what a soft one would refuse. */
const asReserved = (budget: OwnedBudget): PurseBudget =>
  budget.mode === 'shadow' ? { ...budget, mode: 'soft' } : budget;

interface Estimate {
  /** Reserved while the request is under way. */
  whole: Assumed;
  /** Charged for a complete response without a usage. */
  unreported: Assumed;
  cut: Assumed;
}

const estimated = (budget: OwnedBudget, { whole, unreported, cut }: Estimate): HeldPart => ({
  budget,
  reservation: null,
  needed: { nano: whole.nano ?? 0, tokens: whole.tokens },
  hasSeveral: false,
  ifUnreported: unreported,
  ifCut: cut,
});

const NOTHING_KNOWN: Assumed = { nano: null, tokens: 0 };

/** The charge is never less than what the provider reports. */
function chargeFor({ kind, usage, costNano }: Ending, part: HeldPart | null): Assumed {
  const { total, atLeast } = tokensIn(usage);
  const isCut = kind === 'cut' || (kind === 'answered' && part?.hasSeveral === true);
  // Some servers report zeros for what they have not counted. No model runs without a token.
  const isUncounted = total === 0 && part?.budget.mode === 'hard';
  const isKnown = !isCut && !isUncounted;
  const assumed = part === null ? NOTHING_KNOWN : isCut ? part.ifCut : part.ifUnreported;
  return {
    nano: costNano !== null && isKnown ? costNano : larger(assumed.nano, costNano),
    tokens: total !== null && isKnown ? total : Math.max(assumed.tokens, atLeast),
  };
}

const larger = (one: number | null, other: number | null) =>
  one === null || other === null ? (one ?? other) : Math.max(one, other);

/** `total`: all tokens of a request, or null if a count is missing. `atLeast`: the sum of the known counts. */
function tokensIn(usage: ModelUsage | null): { total: number | null; atLeast: number } {
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
