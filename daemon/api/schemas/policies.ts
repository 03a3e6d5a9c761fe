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

export const isNotEmpty = (object: object) => Object.keys(object).length > 0;

export const allowed = z.strictObject({ routes: ROUTES.optional(), models: MODELS.optional() });
export const limited = z.strictObject({
  requests_per_minute: limit('Requests that are forwarded in any 60 seconds.'),
  tokens_per_minute: limit('Model tokens in a minute, on average.'),
  concurrent: limit('Requests that are under way at the same time.'),
});

const USD = z
  .string()
  .regex(new RegExp(`^[0-9]{1,7}(?:\\.[0-9]{1,${BUDGET_PLACES}})?$`))
  .refine((usd) => (nanoOf(usd) ?? 0) > 0 && (nanoOf(usd) ?? 0) <= (nanoOf(String(MAX_BUDGET_USD)) ?? 0));

export const budgeted = z.strictObject({
  usd: USD.describe(
    `US dollars: a decimal number above 0 and up to ${MAX_BUDGET_USD}, as a string, with up to ${BUDGET_PLACES} places after the point.`,
  ).optional(),
  tokens: wholeNumber(1, MAX_BUDGET_TOKENS).describe('Model tokens, of prompts and completions together.').optional(),
  period: z
    .enum(BUDGET_PERIODS)
    .describe('When the budget resets: never (`none`), or at the start of each UTC day or month.')
    .default(DEFAULT_BUDGET_PERIOD),
  mode: z
    .enum(BUDGET_MODES)
    .describe(
      'What happens at the limit. `hard` reserves the most that each request can cost, so the budget is not exceeded. `soft` reserves an estimate, so requests in flight can exceed it. `shadow` refuses nothing, and only reports what `soft` would refuse.',
    )
    .default(DEFAULT_BUDGET_MODE),
});

/** Fields of a request. @param whose such as `the token`. @param together who shares the limits and the budget. */
export const policyFields = (whose: string, together = whose) => ({
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
    `How fast ${together} may ask. Null: without a limit.`,
  ).optional(),
  budget: about(
    nullable(
      budgeted
        .refine(({ usd, tokens }) => usd !== undefined || tokens !== undefined)
        .describe(
          `an object with usd, a decimal number above 0 in a string, tokens, a whole number from 1 to ${MAX_BUDGET_TOKENS}, or both, and optionally period (${BUDGET_PERIODS.join(', ')}) and mode (${BUDGET_MODES.join(', ')}); or null`,
        ),
    ),
    `What ${together} may spend. Null: without a budget.`,
  ).optional(),
});

/** Fields of a response. */
export const policies = (whose: string, together = whose) => ({
  allow: nullable(allowed.describe(`What ${whose} may ask for; null: everything.`)),
  limits: nullable(limited.describe(`How fast ${together} may ask; null: without a limit.`)),
  budget: nullable(
    z
      .strictObject({
        usd: string('US dollars, as a decimal number.').optional(),
        tokens: count('Model tokens, of prompts and completions together.').optional(),
        period: z
          .enum(BUDGET_PERIODS)
          .describe('When the budget resets: never (`none`), or at the start of each UTC day or month.'),
        mode: z.enum(BUDGET_MODES).describe('What happens at the limit.'),
      })
      .describe(`What ${together} may spend; null: without a budget.`),
  ),
});

/** What was spent; a field of responses with tokens and projects. */
export const spent = (whose: string) =>
  z
    .strictObject({
      usd: string('US dollars, as a decimal number. Requests whose cost is unknown are not included.'),
      tokens: count('Model tokens, of prompts and completions together.'),
      reserved_usd: string(
        'US dollars that are reserved for requests in flight, and leased by instances for the next ones.',
      ),
      unpriced_requests: count(
        'Requests whose cost is unknown, because their model has no price or their usage was not reported.',
      ),
      since: timestamp('Start of the current period of the budget; without a period, the time of the creation.'),
    })
    .describe(
      `What was spent by ${whose} in the current period of its budget, or, without a budget or period, since its creation.`,
    );
