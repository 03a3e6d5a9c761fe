/** What restricts a token or a project. */
import * as z from 'zod';
import {
  holdsSecret,
  MAX_ALLOWED,
  MAX_ALLOWED_LENGTH,
  MAX_LIMIT,
  MODEL_NAME_PATTERN,
  ROUTE_PATTERN,
} from '../vocabulary.js';
import { about, nullable, wholeNumber } from './fields.js';

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
});

/** Fields of a response. */
export const policies = (whose: string) => ({
  allow: nullable(allowed.describe(`What ${whose} may ask for; null: everything.`)),
  limits: nullable(limited.describe(`How fast ${whose} may ask; null: without a limit.`)),
});
