import * as z from 'zod';
import { nanoOf } from '../money.js';
import {
  BUDGET_FILTERS,
  MAX_CAP,
  MAX_DURATION_HOURS,
  MODEL_PART_PATTERN,
  TOKEN_SORT_ORDERS,
  TOKEN_STATES,
  type TokenSortOrder,
  BY_MANAGEMENT_TOKEN,
  NAMED_ACTOR_PATTERN,
} from '../vocabulary.js';
import { FAILURES_ARE } from './failures.js';
import { policies, policyFields, spent } from './policies.js';
import {
  EXAMPLE_IDS,
  about,
  boolean,
  count,
  flag,
  id,
  idSelection,
  name,
  nullable,
  oneOf,
  paging,
  partOfText,
  queryFlag,
  queryNumber,
  selection,
  span,
  string,
  timeAgo,
  timeAhead,
  timestamp,
  uuid,
  wholeNumber,
  words,
} from './fields.js';

export const tokenCreate = z
  .strictObject({
    project_id: about(
      id,
      'ID of the project of the token. It must be active. Required, unless `like` is given (default: the project of that token).',
    ).optional(),
    like: about(
      id,
      'ID of another token, in any state: the new token gets its project, name, cap, lifetime, `allow`, `limits` and `budget`, unless they are given.',
    ).optional(),
    duration_hours: about(
      wholeNumber(1, MAX_DURATION_HOURS),
      'Lifetime of the token, in hours (default: 24, or that of `like`). Cannot be combined with `duration_minutes`.',
    ).optional(),
    duration_minutes: about(
      wholeNumber(1, MAX_DURATION_HOURS * 60),
      'Lifetime of the token, in minutes. Cannot be combined with `duration_hours`.',
    ).optional(),
    max_requests: about(
      wholeNumber(0, MAX_CAP),
      'Cap: the total number of requests that can be forwarded with the token. 0, the default, means no cap.',
    ).optional(),
    name: about(name, 'Name of the token. It does not have to be unique.').optional(),
    ...policyFields('the token'),
  })
  .refine(({ project_id, like }) => (project_id ?? like) !== undefined, {
    path: ['project_id'],
    // Also if other fields are wrong, so that all errors are reported at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })
  .describe(
    'A new token. Give `project_id`, `like`, or both, and at most one of `duration_hours` and `duration_minutes`.',
  );

export const tokenPatch = z
  .strictObject({
    is_active: about(flag, 'False revokes the token; true reactivates it.').optional(),
    ...policyFields('the token'),
  })
  .meta({ minProperties: 1 })
  .describe('Changes to a token. Omitted fields do not change.');

export const tokenLookup = z
  .strictObject({
    token: about(z.string().min(1).max(200).describe('a secret, sk-wt-…'), 'The secret of the token to find.'),
  })
  .describe('The secret of a token.');

const percentage = queryNumber(0, 100).describe('a percentage from 0 to 100');

const usd = z
  .string()
  .regex(/^[0-9]{1,7}(?:[.][0-9]{1,9})?$/)
  .refine((given) => nanoOf(given) !== null)
  .describe('US dollars, as a decimal number');

export const tokenQuery = z.strictObject({
  ...paging,
  project_id: about(idSelection, 'Only tokens of these projects: up to 20 IDs.').optional(),
  active_only: about(
    queryFlag,
    'True returns only tokens that can be used now, like `state=active`. Cannot be combined with another `state`.',
  ).optional(),
  state: about(
    selection(`(?:${TOKEN_STATES.join('|')})`, TOKEN_STATES.length, `one of ${TOKEN_STATES.join(', ')}`),
    'Only tokens in these states. With `active_only=true`, the only accepted value is `active`.',
  ).optional(),
  expires_after: about(timeAhead, 'Only tokens that expire after this time.').optional(),
  expires_before: about(timeAhead, 'Only tokens that expire before this time.').optional(),
  created_after: about(timeAgo, 'Only tokens that were created after this time.').optional(),
  created_before: about(timeAgo, 'Only tokens that were created before this time.').optional(),
  idle_over: about(
    span,
    'Only tokens that were last used longer ago than this; tokens that were never used, if they were created longer ago than this.',
  ).optional(),
  errors_over: about(
    queryNumber(0, 1_000_000),
    `Only tokens with more failures than this since yesterday 00:00 UTC: ${FAILURES_ARE}.`,
  ).optional(),
  model: about(
    selection(MODEL_PART_PATTERN, 20, 'a part of the name of a model'),
    'Only tokens with requests since yesterday 00:00 UTC for a model whose name contains one of these texts. Case-insensitive.',
  ).optional(),
  allows: about(
    selection(MODEL_PART_PATTERN, 20, 'the name of a model, in which `*` stands for any characters'),
    'Only tokens that may use a model with one of these names, by their own `allow` and that of their project. Case-sensitive. The state of the token does not matter.',
  ).optional(),
  limited: about(
    queryFlag,
    'True returns only tokens that have `limits`, or whose project has; false only all others.',
  ).optional(),
  used_over: about(percentage, 'Only tokens that have used more than this percentage of their cap.').optional(),
  used_under: about(percentage, 'Only tokens that have used less than this percentage of their cap.').optional(),
  budget: about(
    oneOf(BUDGET_FILTERS),
    'Only tokens with a budget of their own or of their project (`yes`), tokens without (`no`), or tokens with a budget of this mode.',
  ).optional(),
  spent_over: about(
    usd,
    'Only tokens that have spent more US dollars than this in the current period of their budget, or, without a budget or period, since their creation.',
  ).optional(),
  spent_under: about(usd, 'The same, but less than this.').optional(),
  left_over: about(
    percentage,
    'Only tokens with a budget of their own of which more than this percentage is left. If the budget has US dollars and model tokens, the smaller percentage counts.',
  ).optional(),
  left_under: about(percentage, 'The same, but less than this.').optional(),
  issued_by: about(
    z
      .string()
      .regex(new RegExp(`^(?:${NAMED_ACTOR_PATTERN}|${BY_MANAGEMENT_TOKEN})$`))
      .describe(`operator:, person: or trust: and a name or ID, or ${BY_MANAGEMENT_TOKEN}`),
    `Only tokens that this operator, this person or the holder of the management token (\`${BY_MANAGEMENT_TOKEN}\`) has issued, or that were exchanged by this trust.`,
  ).optional(),
  q: about(
    partOfText,
    'Only tokens whose name contains this text, or whose ID starts with it. Case-insensitive.',
  ).optional(),
  words: about(
    words,
    'Only tokens that match each of these words, as with `q`, and none of the words that start with `!`. Example: `ci "two words" !old`.',
  ).optional(),
  sort: about(
    oneOf(TOKEN_SORT_ORDERS as readonly [TokenSortOrder, ...TokenSortOrder[]]),
    'Sort order. A leading `-` sorts in descending order. `live` lists active tokens first, those that expire next on top, then all other tokens, those that expired last on top. `spent` is in US dollars, as in `spent_over`.',
  ).default('-created_at'),
});

export const token = z
  .strictObject({
    id: uuid('ID of the token. It is not a secret.'),
    project_id: uuid('ID of the project of the token.'),
    project_name: string('Name of the project of the token.'),
    name: nullable(string('Name of the token, or null.')),
    is_active: boolean('False once the token is revoked.'),
    state: z
      .enum(TOKEN_STATES)
      .describe(
        'State of the token. Only `active` tokens can be used. `rate_limited` means that the token has reached its cap, `project_inactive` that its project is inactive.',
      ),
    expires_at: timestamp('Expiry time.'),
    max_requests: count('Cap: the total number of requests that can be forwarded. 0 means no cap.'),
    request_count: count(
      'Number of forwarded requests that count towards the cap: all of them, or with `COUNT_READS=false` all except reads.',
    ),
    cache_hit_count: count('Number of requests served from the cache. They do not count towards the cap.'),
    created_at: timestamp('Creation time.'),
    last_used_at: nullable(timestamp('Time of the last use; null if the token was never used.')),
    issued_by: nullable(
      string(
        'Who has issued the token: `operator:` and a name, `person:` with the identity provider and the ID that it gave, such as `person:login.example.com#248289761001`, or `trust:` and an ID. Null: the holder of the management token.',
      ),
    ),
    issued_by_name: nullable(string('Name of who has issued the token, or null.')),
    obfuscated: string('The secret, mostly masked, to tell tokens apart.'),
    revoked_at: nullable(timestamp('Time of the revocation; null unless the token is revoked.')),
    revoked_by: nullable(
      string(
        'Who revoked the token, as `actor` in the audit log. For the holder of the management token, the user that the front end reported (not verified), if it did. Null unless the token is revoked.',
      ),
    ),
    revoke_reason: nullable(string('The reason that was given in `X-Audit-Reason` for the revocation, or null.')),
    ...policies('the token'),
    spent: spent('the token'),
  })
  .describe('A token, without its secret.');

export const tokenExample: z.input<typeof token> = {
  id: EXAMPLE_IDS.token,
  project_id: EXAMPLE_IDS.project,
  project_name: 'Checkout',
  name: 'nightly tests',
  is_active: true,
  state: 'active',
  expires_at: '2030-02-07T12:00:00.000Z',
  max_requests: 1000,
  request_count: 42,
  cache_hit_count: 7,
  created_at: '2030-01-31T12:00:00.000Z',
  last_used_at: '2030-01-31T12:34:56.789Z',
  issued_by: 'operator:ana',
  issued_by_name: 'ana',
  obfuscated: 'sk-wt-…3kQ9',
  revoked_at: null,
  revoked_by: null,
  revoke_reason: null,
  allow: { routes: ['inference', 'GET /v1/models'], models: ['gpt-5-mini', 'claude-haiku-*'] },
  limits: null,
  budget: { usd: '25.00', period: 'month', mode: 'soft' },
  spent: {
    usd: '3.4716',
    tokens: 1_204_310,
    reserved_usd: '0.05',
    unpriced_requests: 0,
    since: '2030-01-01T00:00:00.000Z',
  },
};

export const tokenCreated = token
  .extend({
    token: string('The secret, `sk-wt-…`, which clients of /v1 send as their API key. Only this response contains it.'),
  })
  .describe('A new token with its secret.');

export const message = z
  .strictObject({ message: string('Message for people.') })
  .describe('The result of an operation.');

export const tokensRevoked = message
  .extend({ revoked_count: count('Number of revoked tokens, not counting tokens that were already revoked.') })
  .describe('Result of revoking all tokens of a project.');
