/** The options that restrict a token or a project. */
import { integer, type Kind } from '../config/kinds.js';
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
} from '../daemon/api/vocabulary.js';
import { LIMIT_NAMES } from '../console/columns/policies.js';
import { shellWord } from '../console/escape.js';
import { value, type Values } from './option.js';

/** Removes a list or a limit. */
const NONE = 'none';

/** A list of patterns; empty for `none`. */
function entries(pattern: string, what: string): Kind<string[]> {
  const entry = new RegExp(`^(?:${pattern})$`);
  return {
    accepts: `${what}, up to ${MAX_ALLOWED}, separated by commas; or ${NONE}`,
    isList: true,
    parse(given) {
      if (given === NONE) return [];
      const all = given.split(',').map((each) => each.trim());
      const isList = all.length <= MAX_ALLOWED && !all.includes(NONE);
      return isList && all.every((each) => each.length <= MAX_ALLOWED_LENGTH && entry.test(each)) ? all : undefined;
    },
  };
}

const routes = entries(ROUTE_PATTERN, `routes such as 'POST /v1/chat/*', or ${ROUTE_PRESETS.join(', ')}`);
const models = entries(MODEL_NAME_PATTERN, "names of models such as gpt-5-mini or 'claude-*'");

/** A limit; 0 for `none`. */
const count = integer(1, MAX_LIMIT);
const limit: Kind<number> = {
  accepts: `${count.accepts}, or ${NONE}`,
  parse: (given) => (given === NONE ? 0 : count.parse(given)),
};

export const policyOptions = {
  allowRoute: value(
    '--allow-route <ROUTE>',
    routes,
    `only these routes: 'METHOD PATH', in which * stands for any characters, or ${ROUTE_PRESETS.join(', ')}; ${NONE} removes the list`,
  ),
  allowModel: value(
    '--allow-model <MODEL>',
    models,
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
};

type Given = Values<typeof policyOptions>;

/** The options of the limits, by the names of the API. */
const LIMIT_OPTIONS = {
  requests_per_minute: 'rpm',
  tokens_per_minute: 'tpm',
  concurrent: 'concurrent',
} as const satisfies Record<keyof Limits, keyof Given>;

/** Named by messages that ask for an option. */
export const POLICY_OPTIONS_SHOWN = '--allow-route ROUTE, --allow-model MODEL, --rpm, --tpm or --concurrent COUNT';

/**
 * @param before the lists and limits that stay, unless an option replaces or removes them.
 * @returns the fields of the API; empty without any of the options.
 */
export function policiesIn(given: Given, before: Policies): Partial<Policies> {
  const { allowRoute, allowModel } = given;
  const isAllowGiven = allowRoute !== undefined || allowModel !== undefined;
  const isLimitGiven = LIMIT_NAMES.some((name) => given[LIMIT_OPTIONS[name]] !== undefined);
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
  };
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
  ];
}
