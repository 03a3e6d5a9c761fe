/** What restricts a token or a project, as text: values of options and of fields in forms. */
import type { WireUsageLine } from '../../daemon/api/contract.js';
import {
  type Allow,
  type Limits,
  MAX_ALLOWED,
  MAX_ALLOWED_LENGTH,
  MAX_LIMIT,
  MODEL_NAME_PATTERN,
  type Policies,
  ROUTE_PATTERN,
  ROUTE_PRESETS,
} from '../../daemon/api/vocabulary.js';

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
export const LIMIT: Parsed<number> = {
  accepts: `a whole number from 1 to ${MAX_LIMIT}`,
  parse(given) {
    const limit = /^\d{1,10}$/.test(given) ? Number(given) : 0;
    return limit >= 1 && limit <= MAX_LIMIT ? limit : undefined;
  },
};

/** The fields of forms, in their order. Each may be empty. */
export const POLICY_FIELDS = {
  models: { label: 'Models', hint: 'empty: all; * in a name stands for any characters' },
  routes: { label: 'Routes', hint: `empty: all; METHOD PATH with *, or ${ROUTE_PRESETS.join(', ')}` },
  requests_per_minute: { label: 'Requests/min', hint: 'empty: no limit' },
  tokens_per_minute: { label: 'Model tokens/min', hint: 'empty: no limit' },
  concurrent: { label: 'At a time', hint: 'requests; empty: no limit' },
} as const satisfies Record<keyof Allow | keyof Limits, { label: string; hint: string }>;

export type PolicyField = keyof typeof POLICY_FIELDS;
export type PolicyLabel = (typeof POLICY_FIELDS)[PolicyField]['label'];
export type PolicyTexts = Record<PolicyField, string>;

const LISTS = { models: MODELS, routes: ROUTES } as const;
type ListField = keyof typeof LISTS;
export const isListField = (field: PolicyField): field is ListField => field in LISTS;
export const policyFields = Object.keys(POLICY_FIELDS) as PolicyField[];

/** The longest text of a list. */
export const MAX_LIST_LENGTH = MAX_ALLOWED * (MAX_ALLOWED_LENGTH + 1);

export function policyTexts({ allow, limits }: Policies): PolicyTexts {
  return {
    models: allow?.models?.join(', ') ?? '',
    routes: allow?.routes?.join(', ') ?? '',
    requests_per_minute: limits?.requests_per_minute?.toString() ?? '',
    tokens_per_minute: limits?.tokens_per_minute?.toString() ?? '',
    concurrent: limits?.concurrent?.toString() ?? '',
  };
}

/** What is wrong with a field. */
export interface PolicyProblem {
  field: PolicyField;
  words: string;
}

export function policiesOf(texts: PolicyTexts): Policies | PolicyProblem {
  const allow: Allow = {};
  const limits: Limits = {};
  for (const field of policyFields) {
    const given = texts[field].trim();
    if (given === '') continue;
    const kind: Parsed<string[] | number> = isListField(field) ? LISTS[field] : LIMIT;
    const value = kind.parse(given);
    if (value === undefined) return { field, words: `${POLICY_FIELDS[field].label}: ${kind.accepts}` };
    Object.assign(isListField(field) ? allow : limits, { [field]: value });
  }
  return { allow: orNull(allow), limits: orNull(limits), budget: null };
}

const orNull = <T extends object>(object: T): T | null => (Object.keys(object).length === 0 ? null : object);

/** @returns those of the two objects that the texts change. */
export function policyChanges(before: Policies, texts: PolicyTexts): Partial<Policies> | PolicyProblem {
  const after = policiesOf(texts);
  if ('words' in after) return after;
  const [was, is] = [policyTexts(before), policyTexts(after)];
  const isOther = (fields: readonly PolicyField[]) => fields.some((field) => was[field] !== is[field]);
  return {
    ...(isOther(policyFields.filter(isListField)) && { allow: after.allow }),
    ...(isOther(policyFields.filter((field) => !isListField(field))) && { limits: after.limits }),
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
