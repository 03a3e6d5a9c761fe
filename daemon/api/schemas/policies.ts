/** What restricts a token or a project. */
import * as z from 'zod';
import { BUDGET_PLACES, MAX_BUDGET_USD, nanoOf } from '../money.js';
import {
  BUDGET_MODES,
  BUDGET_PERIODS,
  DEFAULT_BUDGET_MODE,
  DEFAULT_BUDGET_PERIOD,
  holdsSecret,
  MAX_ALLOWED,
  MAX_ALLOWED_LENGTH,
  MAX_BUDGET_TOKENS,
  MAX_LIMIT,
  MODEL_NAME_PATTERN,
  ROUTE_PATTERN,
} from '../vocabulary.js';
import { about, count, nullable, string, timestamp, wholeNumber } from './fields.js';

const entries = (pattern: string) =>
  z
    .array(
      z
        .string()
        .min(1)
        .max(MAX_ALLOWED_LENGTH)
        .regex(new RegExp(`^${pattern}$`))
        .refine((entry) => !holdsSecret(entry)),
    )
    .min(1)
    .max(MAX_ALLOWED);

const ROUTES = entries(ROUTE_PATTERN).describe(
  'Routes: `METHOD PATH`, in which the path may contain `*` for any characters and `*` stands for any method, or one of the presets `inference`, `read`, `contained` and `all`.',
);
const MODELS = entries(MODEL_NAME_PATTERN).describe('Names of models, in which `*` stands for any characters.');

const limit = (what: string) => wholeNumber(1, MAX_LIMIT).describe(what).optional();

const isNotEmpty = (object: object) => Object.keys(object).length > 0;

const allowed = z.strictObject({ routes: ROUTES.optional(), models: MODELS.optional() });
const limited = z.strictObject({
  requests_per_minute: limit('Requests that are forwarded in any 60 seconds.'),
  tokens_per_minute: limit('Model tokens in a minute, on average.'),
  concurrent: limit('Requests that are under way at the same time.'),
});

const USD = z
  .string()
  .regex(new RegExp(`^[0-9]{1,7}(?:\\.[0-9]{1,${BUDGET_PLACES}})?$`))
  .refine((usd) => (nanoOf(usd) ?? 0) > 0 && (nanoOf(usd) ?? 0) <= (nanoOf(String(MAX_BUDGET_USD)) ?? 0));

const budgeted = z.strictObject({
  usd: USD.describe(
    `US dollars: a decimal number above 0 and up to ${MAX_BUDGET_USD}, as a string, with at most ${BUDGET_PLACES} places after the point.`,
  ).optional(),
  tokens: wholeNumber(1, MAX_BUDGET_TOKENS).describe('Model tokens, of prompts and completions together.').optional(),
  period: z
    .enum(BUDGET_PERIODS)
    .describe('When it begins again: never, or with each day or month in UTC.')
    .default(DEFAULT_BUDGET_PERIOD),
  mode: z
    .enum(BUDGET_MODES)
    .describe(
      'What it does with a request that does not fit. `hard` reserves the most that a request can cost, so that it is not exceeded; `soft` reserves an estimate; `shadow` refuses nothing, and only reports what would be refused.',
    )
    .default(DEFAULT_BUDGET_MODE),
});

/** Fields of a request. @param whose such as `the token`. */
export const policyFields = (whose: string) => ({
  allow: about(
    nullable(
      allowed
        .refine(isNotEmpty)
        .meta({ minProperties: 1 })
        .describe(
          `an object with routes, models or both: lists of 1 to ${MAX_ALLOWED} entries of at most ${MAX_ALLOWED_LENGTH} visible ASCII characters without commas; or null`,
        ),
    ),
    `What ${whose} may ask for. A request must match an entry of each list that is given. Null allows everything.`,
  ).optional(),
  limits: about(
    nullable(
      limited
        .refine(isNotEmpty)
        .meta({ minProperties: 1 })
        .describe(
          `an object with requests_per_minute, tokens_per_minute or concurrent: whole numbers from 1 to ${MAX_LIMIT}; or null`,
        ),
    ),
    `How fast ${whose} may ask. Null: without a limit.`,
  ).optional(),
  budget: about(
    nullable(
      budgeted
        .refine(({ usd, tokens }) => usd !== undefined || tokens !== undefined)
        .describe(
          `an object with usd, a decimal number above 0 in a string, tokens, a whole number from 1 to ${MAX_BUDGET_TOKENS}, or both, and optionally period (${BUDGET_PERIODS.join(', ')}) and mode (${BUDGET_MODES.join(', ')}); or null`,
        ),
    ),
    `What ${whose} may spend. Null: without a budget.`,
  ).optional(),
});

/** Fields of a response. */
export const policies = (whose: string) => ({
  allow: nullable(allowed.describe(`What ${whose} may ask for; null: everything.`)),
  limits: nullable(limited.describe(`How fast ${whose} may ask; null: without a limit.`)),
  budget: nullable(
    z
      .strictObject({
        usd: string('US dollars, as a decimal number.').optional(),
        tokens: count('Model tokens, of prompts and completions together.').optional(),
        period: z.enum(BUDGET_PERIODS).describe('When it begins again: never, or with each day or month in UTC.'),
        mode: z.enum(BUDGET_MODES).describe('What it does with a request that does not fit.'),
      })
      .describe(`What ${whose} may spend; null: without a budget.`),
  ),
});

/** What was spent; a field of responses with tokens and projects. */
export const spent = (whose: string) =>
  z
    .strictObject({
      usd: string('US dollars, as a decimal number. Requests whose cost is unknown are not included.'),
      tokens: count('Model tokens, of prompts and completions together.'),
      reserved_usd: string('US dollars that are reserved for requests under way, and for those that come next.'),
      unpriced_requests: count(
        'Requests whose cost is unknown, because their model has no price or their usage was not reported.',
      ),
      since: timestamp('Since when: the start of the period of the budget, or the creation.'),
    })
    .describe(`What ${whose} has spent in the current period of its budget, or since it was created.`);
