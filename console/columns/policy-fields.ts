/** What restricts a token or a project, as text: values of options and of fields in forms. */
import type { WireUsageLine } from '../../daemon/api/contract.js';
import { BUDGET_PLACES, MAX_BUDGET_USD, nanoOf, usdOf } from '../../daemon/api/money.js';
import {
  type Allow,
  type Budget,
  BUDGET_MODES,
  BUDGET_PERIODS,
  DEFAULT_BUDGET_MODE,
  DEFAULT_BUDGET_PERIOD,
  type Limits,
  MAX_ALLOWED,
  MAX_ALLOWED_LENGTH,
  MAX_BUDGET_TOKENS,
  MAX_LIMIT,
  MODEL_NAME_PATTERN,
  type Policies,
  ROUTE_PATTERN,
  ROUTE_PRESETS,
} from '../../daemon/api/vocabulary.js';
import { MODE_TITLES, PERIOD_TITLES } from './policies.js';

/** How a value is parsed: as a kind of settings (config/kinds.ts). */
interface Parsed<T> {
  /** Completes the sentence "NAME must be …". */
  accepts: string;
  isList?: boolean;
  /** @returns undefined if the text is not valid. */
  parse(text: string): T | undefined;
}

/** A list of patterns. */
function entries(pattern: string, what: string): Parsed<string[]> {
  const entry = new RegExp(`^(?:${pattern})$`);
  return {
    accepts: `${what}, up to ${MAX_ALLOWED}, separated by commas`,
    isList: true,
    parse(given) {
      const all = given.split(',').map((each) => each.trim());
      const isList = all.length <= MAX_ALLOWED;
      return isList && all.every((each) => each.length <= MAX_ALLOWED_LENGTH && entry.test(each)) ? all : undefined;
    },
  };
}

export const ROUTES = entries(ROUTE_PATTERN, `routes such as 'POST /v1/chat/*', or ${ROUTE_PRESETS.join(', ')}`);
export const MODELS = entries(MODEL_NAME_PATTERN, "names of models such as gpt-5-mini or 'claude-*'");

function wholeNumber(max: number): Parsed<number> {
  const digits = new RegExp(`^\\d{1,${String(max).length}}$`);
  return {
    accepts: `a whole number from 1 to ${max}`,
    parse(given) {
      const number = digits.test(given) ? Number(given) : 0;
      return number >= 1 && number <= max ? number : undefined;
    },
  };
}

export const LIMIT = wholeNumber(MAX_LIMIT);

/** In the form of `Budget.usd`. */
export const BUDGET_USD: Parsed<string> = {
  accepts: `US dollars above 0 and up to ${MAX_BUDGET_USD}, such as 20 or 1.50, with up to ${BUDGET_PLACES} places after the point`,
  parse(given) {
    const usd = given.replace(/^\$/, '');
    const nano = PLACES.test(usd) ? (nanoOf(usd) ?? 0) : 0;
    return nano > 0 && nano <= (nanoOf(String(MAX_BUDGET_USD)) ?? 0) ? usdOf(nano) : undefined;
  },
};
const PLACES = new RegExp(`^\\d+(?:\\.\\d{1,${BUDGET_PLACES}})?$`);

export const BUDGET_TOKENS = wholeNumber(MAX_BUDGET_TOKENS);

function oneOf<T extends string>(values: readonly T[]): Parsed<T> {
  return { accepts: `one of ${values.join(', ')}`, parse: (given) => values.find((value) => value === given) };
}

export const BUDGET_PERIOD = oneOf(BUDGET_PERIODS);
export const BUDGET_MODE = oneOf(BUDGET_MODES);

/** The fields of forms, in their order. An empty text means no list, limit or amount. */
export const POLICY_FIELDS = {
  models: { label: 'Models', hint: 'empty: all; * in a name stands for any characters', of: 'allow', kind: MODELS },
  routes: {
    label: 'Routes',
    hint: `empty: all; METHOD PATH with *, or ${ROUTE_PRESETS.join(', ')}`,
    of: 'allow',
    kind: ROUTES,
  },
  requests_per_minute: { label: 'Requests/min', hint: 'empty: no limit', of: 'limits', kind: LIMIT },
  tokens_per_minute: { label: 'Model tokens/min', hint: 'empty: no limit', of: 'limits', kind: LIMIT },
  concurrent: { label: 'At a time', hint: 'requests; empty: no limit', of: 'limits', kind: LIMIT },
  budget_usd: { label: 'Budget, USD', hint: 'such as 20; empty: no limit', of: 'budget', kind: BUDGET_USD },
  budget_tokens: {
    label: 'Budget, tokens',
    hint: 'model tokens; empty: no limit',
    of: 'budget',
    kind: BUDGET_TOKENS,
  },
  budget_period: {
    label: 'Budget period',
    hint: 'when the budget resets',
    of: 'budget',
    kind: BUDGET_PERIOD,
    choices: BUDGET_PERIODS.map((value) => ({ value, label: PERIOD_TITLES[value] })),
  },
  budget_mode: {
    label: 'Budget mode',
    hint: 'what happens at the limit',
    of: 'budget',
    kind: BUDGET_MODE,
    choices: BUDGET_MODES.map((value) => ({ value, label: MODE_TITLES[value] })),
  },
} as const satisfies Record<keyof Allow | keyof Limits | `budget_${keyof Budget}`, FieldOf<string>>;

interface FieldOf<Label> {
  label: Label;
  hint: string;
  /** The object of the API that it belongs to. */
  of: keyof Policies;
  kind: Parsed<unknown>;
  /** Of a field that is chosen rather than typed. */
  choices?: readonly { value: string; label: string }[];
}

export type PolicyField = keyof typeof POLICY_FIELDS;
export type PolicyLabel = (typeof POLICY_FIELDS)[PolicyField]['label'];
export type PolicyTexts = Record<PolicyField, string>;

export const policyField = (field: PolicyField): FieldOf<PolicyLabel> => POLICY_FIELDS[field];
export const policyFields = Object.keys(POLICY_FIELDS) as PolicyField[];
/** What a token or project may spend. */
export const budgetFields = policyFields.filter((field) => policyField(field).of === 'budget');

/** The longest text of a list. */
export const MAX_LIST_LENGTH = MAX_ALLOWED * (MAX_ALLOWED_LENGTH + 1);

export function policyTexts({ allow, limits, budget }: Policies): PolicyTexts {
  return {
    models: allow?.models?.join(', ') ?? '',
    routes: allow?.routes?.join(', ') ?? '',
    requests_per_minute: limits?.requests_per_minute?.toString() ?? '',
    tokens_per_minute: limits?.tokens_per_minute?.toString() ?? '',
    concurrent: limits?.concurrent?.toString() ?? '',
    budget_usd: budget?.usd ?? '',
    budget_tokens: budget?.tokens?.toString() ?? '',
    budget_period: budget?.period ?? DEFAULT_BUDGET_PERIOD,
    budget_mode: budget?.mode ?? DEFAULT_BUDGET_MODE,
  };
}

/** What is wrong with a field. */
export interface PolicyProblem {
  field: PolicyField;
  words: string;
}

export function policiesOf(texts: PolicyTexts): Policies | PolicyProblem {
  const parts: { allow: Allow; limits: Limits; budget: Partial<Budget> } = { allow: {}, limits: {}, budget: {} };
  for (const field of policyFields) {
    const given = texts[field].trim();
    if (given === '') continue;
    const { of, label, kind } = policyField(field);
    const value = kind.parse(given);
    if (value === undefined) return { field, words: `${label}: ${kind.accepts}` };
    Object.assign(parts[of], { [field.replace(/^budget_/, '')]: value });
  }
  const { allow, limits, budget } = parts;
  return { allow: orNull(allow), limits: orNull(limits), budget: budgetOf(budget) };
}

const orNull = <T extends object>(object: T): T | null => (Object.keys(object).length === 0 ? null : object);

/** Null without an amount: a period and a mode alone are no budget. */
function budgetOf(given: Partial<Budget>): Budget | null {
  if (given.usd === undefined && given.tokens === undefined) return null;
  return { period: DEFAULT_BUDGET_PERIOD, mode: DEFAULT_BUDGET_MODE, ...given };
}

/**
 * @param texts of the fields that a form has. The other fields stay unchanged.
 * @returns the objects that the texts change.
 */
export function policyChanges(before: Policies, texts: Partial<PolicyTexts>): Partial<Policies> | PolicyProblem {
  const was = policyTexts(before);
  const after = policiesOf({ ...was, ...texts });
  if ('words' in after) return after;
  const is = policyTexts(after);
  const isOther = (part: keyof Policies) =>
    policyFields.some((field) => policyField(field).of === part && was[field] !== is[field]);
  return {
    ...(isOther('allow') && { allow: after.allow }),
    ...(isOther('limits') && { limits: after.limits }),
    ...(isOther('budget') && { budget: after.budget }),
  };
}

/** How far back models are offered. */
export const USED_SINCE = '30d';
const MAX_OFFERED = 50;
/** Sum of all models that are not counted by name (daemon/core/model-names.ts). */
const OTHERS = 'other';

/** The models of a usage report by model that answered, those with the most requests first. */
export function usedModels(lines: readonly Pick<WireUsageLine, 'model' | 'requests' | 'errors'>[]): string[] {
  const named = lines.flatMap(({ model, requests, errors }) =>
    model && model !== OTHERS && requests > errors && MODELS.parse(model)?.length === 1 ? [{ model, requests }] : [],
  );
  const sorted = named.sort((one, other) => other.requests - one.requests).map(({ model }) => model);
  return [...new Set(sorted)].slice(0, MAX_OFFERED);
}
