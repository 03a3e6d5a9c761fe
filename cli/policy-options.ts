/** The options that restrict a token or a project. */
import { type Kind, oneOf } from '../config/kinds.js';
import {
  type Allow,
  type Budget,
  BUDGET_MODES,
  BUDGET_PERIODS,
  DEFAULT_BUDGET_MODE,
  DEFAULT_BUDGET_PERIOD,
  type Limits,
  type Policies,
  ROUTE_PRESETS,
} from '../daemon/api/vocabulary.js';
import { LIMIT_NAMES } from '../console/columns/policies.js';
import { shellWord } from '../console/escape.js';
import { usage } from '../console/failure.js';
import { BUDGET_TOKENS, BUDGET_USD, LIMIT, MODELS, ROUTES } from '../console/columns/policy-fields.js';
import { value, type Values } from './option.js';

/** Removes a list, a limit or an amount of a budget. */
export const NONE = 'none';

/** A kind that also accepts `none`, which is parsed as `nothing`. */
export const orNone = <T>(kind: Kind<T>, nothing: T): Kind<T> => ({
  ...kind,
  accepts: `${kind.accepts}; or ${NONE}`,
  parse: (given) => (given === NONE ? nothing : isMixed(given) ? undefined : kind.parse(given)),
});

const isMixed = (given: string) => given.split(',').some((each) => each.trim() === NONE);

const limit = orNone(LIMIT, 0);

export const policyOptions = {
  allowRoute: value(
    '--allow-route <ROUTE>',
    orNone(ROUTES, []),
    `only these routes: 'METHOD PATH', in which * stands for any characters, or ${ROUTE_PRESETS.join(', ')}; ${NONE} removes the list`,
  ),
  allowModel: value(
    '--allow-model <MODEL>',
    orNone(MODELS, []),
    `only these models; * in a name stands for any characters; ${NONE} removes the list`,
    'model',
  ),
  rpm: value('--rpm <COUNT>', limit, `requests that are forwarded in any 60 seconds; ${NONE} removes the limit`),
  tpm: value('--tpm <COUNT>', limit, `model tokens in a minute, on average; ${NONE} removes the limit`),
  concurrent: value(
    '--concurrent <COUNT>',
    limit,
    `requests that are under way at the same time; ${NONE} removes the limit`,
  ),
  budgetUsd: value(
    '--budget-usd <AMOUNT>',
    orNone(BUDGET_USD, ''),
    `budget in US dollars, such as 20 or 0.50; ${NONE} removes the amount`,
  ),
  budgetTokens: value(
    '--budget-tokens <COUNT>',
    orNone(BUDGET_TOKENS, 0),
    `budget in model tokens, of prompts and completions together; ${NONE} removes the amount`,
  ),
  budgetPeriod: value(
    '--budget-period <PERIOD>',
    oneOf(...BUDGET_PERIODS),
    `when the budget resets: never (none), or with each day or month in UTC (${BUDGET_PERIODS.join(', ')}; default: ${DEFAULT_BUDGET_PERIOD})`,
  ),
  budgetMode: value(
    '--budget-mode <MODE>',
    oneOf(...BUDGET_MODES),
    `hard refuses requests that could exceed the budget, soft refuses new requests once it is spent, and shadow only reports (${BUDGET_MODES.join(', ')}; default: ${DEFAULT_BUDGET_MODE})`,
  ),
};

type Given = Values<typeof policyOptions>;

/** The options of the limits, by the names of the API. */
const LIMIT_OPTIONS = {
  requests_per_minute: 'rpm',
  tokens_per_minute: 'tpm',
  concurrent: 'concurrent',
} as const satisfies Record<keyof Limits, keyof Given>;

/** Named by messages that ask for an option. */
export const POLICY_OPTIONS_SHOWN =
  '--allow-route ROUTE, --allow-model MODEL, --rpm, --tpm or --concurrent COUNT, or --budget-usd AMOUNT';

/** The options of the members of a budget. */
const BUDGET_OPTIONS = {
  usd: 'budgetUsd',
  tokens: 'budgetTokens',
  period: 'budgetPeriod',
  mode: 'budgetMode',
} as const satisfies Record<keyof Budget, keyof Given>;
const BUDGET_MEMBERS = Object.keys(BUDGET_OPTIONS) as (keyof Budget)[];

/**
 * @param before the lists, limits and budget that stay, unless an option replaces or removes them.
 * @returns the fields of the API; empty without any of the options.
 * @throws {Failure} for a budget without an amount.
 */
export function policiesIn(given: Given, before: Policies): Partial<Policies> {
  const { allowRoute, allowModel } = given;
  const isAllowGiven = allowRoute !== undefined || allowModel !== undefined;
  const isLimitGiven = LIMIT_NAMES.some((name) => given[LIMIT_OPTIONS[name]] !== undefined);
  const isBudgetGiven = BUDGET_MEMBERS.some((member) => given[BUDGET_OPTIONS[member]] !== undefined);
  return {
    ...(isAllowGiven && {
      allow: without<Allow>(({ length }: string[]) => length === 0, {
        routes: allowRoute ?? before.allow?.routes,
        models: allowModel ?? before.allow?.models,
      }),
    }),
    ...(isLimitGiven && {
      limits: without<Limits>(
        (of: number) => of === 0,
        Object.fromEntries(LIMIT_NAMES.map((name) => [name, given[LIMIT_OPTIONS[name]] ?? before.limits?.[name]])),
      ),
    }),
    ...(isBudgetGiven && { budget: budgetIn(given, before.budget) }),
  };
}

/** @returns null if no amount is left. */
function budgetIn(given: Given, before: Budget | null): Budget | null {
  const { usd = before?.usd, tokens = before?.tokens } = { usd: given.budgetUsd, tokens: given.budgetTokens };
  if (usd || tokens) {
    return {
      ...(usd && { usd }),
      ...(tokens && { tokens }),
      period: given.budgetPeriod ?? before?.period ?? DEFAULT_BUDGET_PERIOD,
      mode: given.budgetMode ?? before?.mode ?? DEFAULT_BUDGET_MODE,
    };
  }
  if ((given.budgetPeriod ?? given.budgetMode) === undefined) return null;
  throw usage('a budget needs an amount', { advice: 'Add --budget-usd AMOUNT or --budget-tokens COUNT' });
}

/** The options that say the same. */
export function optionsOf({ allow, limits, budget }: Policies): Given {
  const all: Given = {
    allowRoute: allow?.routes,
    allowModel: allow?.models,
    ...Object.fromEntries(LIMIT_NAMES.map((name) => [LIMIT_OPTIONS[name], limits?.[name]])),
    ...Object.fromEntries(BUDGET_MEMBERS.map((member) => [BUDGET_OPTIONS[member], budget?.[member]])),
  };
  return Object.fromEntries(Object.entries(all).filter(([, each]) => each !== undefined));
}

export const hasPolicies = (given: Given): boolean =>
  (Object.keys(policyOptions) as (keyof Given)[]).some((name) => given[name] !== undefined);

/** @returns null if nothing is left. */
function without<O extends object>(isNone: (value: never) => boolean, object: O): O | null {
  const left = Object.entries(object).filter(([, each]) => each !== undefined && !isNone(each as never));
  return left.length === 0 ? null : (Object.fromEntries(left) as O);
}

/** The options that set what a change has replaced. */
export function policyOptionsOf(before: Policies, after: Policies): string[] {
  const option = (name: string, was: string | undefined, is: string | undefined) =>
    was === is ? [] : [`--${name} ${shellWord(was ?? NONE)}`];
  return [
    ...option('allow-route', before.allow?.routes?.join(','), after.allow?.routes?.join(',')),
    ...option('allow-model', before.allow?.models?.join(','), after.allow?.models?.join(',')),
    ...LIMIT_NAMES.flatMap((name) =>
      option(LIMIT_OPTIONS[name], before.limits?.[name]?.toString(), after.limits?.[name]?.toString()),
    ),
    ...option('budget-usd', before.budget?.usd, after.budget?.usd),
    ...option('budget-tokens', before.budget?.tokens?.toString(), after.budget?.tokens?.toString()),
    // They are removed with the amounts.
    ...(before.budget === null ? [] : option('budget-period', before.budget.period, after.budget?.period)),
    ...(before.budget === null ? [] : option('budget-mode', before.budget.mode, after.budget?.mode)),
  ];
}
