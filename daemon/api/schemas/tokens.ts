import * as z from 'zod';
import { MAX_CAP, MAX_DURATION_HOURS, TOKEN_SORT_ORDERS, TOKEN_STATES, type TokenSortOrder } from '../vocabulary.js';
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
  string,
  timeAhead,
  timestamp,
  uuid,
  wholeNumber,
  words,
} from './fields.js';

export const tokenCreate = z
  .strictObject({
    project_id: about(id, 'The project that the token is for. It must be active.'),
    duration_hours: about(
      wholeNumber(1, MAX_DURATION_HOURS),
      'How long the token is valid. 24 hours unless given; not together with `duration_minutes`.',
    ).optional(),
    duration_minutes: about(
      wholeNumber(1, MAX_DURATION_HOURS * 60),
      'How long the token is valid, in minutes. Not together with `duration_hours`.',
    ).optional(),
    max_requests: about(
      wholeNumber(0, MAX_CAP),
      'The cap: how many requests may be forwarded with the token in all. 0 means that there is no cap, as does leaving it out.',
    ).optional(),
    name: about(name, 'A name to find the token by. Several tokens may have the same.').optional(),
  })
  .describe('A token to be created. Give at most one of `duration_hours` and `duration_minutes`.');

export const tokenPatch = z
  .strictObject({ is_active: about(flag, 'False revokes the token, true reactivates it.') })
  .describe('What to change of a token.');

export const tokenLookup = z
  .strictObject({
    token: about(z.string().min(1).max(200).describe('a secret, sk-wt-…'), 'The secret whose token is looked for.'),
  })
  .describe('The secret of a token.');

const percentage = queryNumber(0, 100).describe('a percentage from 0 to 100');

export const tokenQuery = z.strictObject({
  ...paging,
  project_id: about(idSelection, 'Shows tokens of these projects: one id, or up to 20.').optional(),
  active_only: about(
    queryFlag,
    'True shows only tokens that can be used now, as `state=active` does; it cannot be combined with another `state`.',
  ).optional(),
  state: about(
    selection(`(?:${TOKEN_STATES.join('|')})`, TOKEN_STATES.length, `one of ${TOKEN_STATES.join(', ')}`),
    'Shows tokens in these states. With `active_only=true`, only `active` is accepted.',
  ).optional(),
  expires_after: about(timeAhead, 'Shows tokens that expire after this time.').optional(),
  expires_before: about(timeAhead, 'Shows tokens that expire before this time.').optional(),
  used_over: about(percentage, 'Shows tokens with a cap of which more than this share is used.').optional(),
  used_under: about(percentage, 'Shows tokens with a cap of which less than this share is used.').optional(),
  q: about(
    partOfText,
    'Shows tokens whose name contains this, in any letter case, or whose id begins with it.',
  ).optional(),
  words: about(
    words,
    'Shows tokens in which each of these words is found as with `q`, and none of those with `!`: `ci "two words" !old`.',
  ).optional(),
  sort: about(
    oneOf(TOKEN_SORT_ORDERS as readonly [TokenSortOrder, ...TokenSortOrder[]]),
    'The order. With `-` in front the greatest or latest comes first. `live` puts the active tokens first, those that expire next on top, then all others, those that expired last on top.',
  ).default('-created_at'),
});

export const token = z
  .strictObject({
    id: uuid("The token's id. It is no secret."),
    project_id: uuid('The project that the token is for.'),
    name: nullable(string("The token's name; null if it has none.")),
    is_active: boolean('False once the token is revoked.'),
    state: z
      .enum(TOKEN_STATES)
      .describe(
        'Whether the token can be used: `active`, or why not. `rate_limited` means that its cap is reached, `project_inactive` that its project is deactivated.',
      ),
    expires_at: timestamp('When the token expires.'),
    max_requests: count('The cap: how many requests may be forwarded in all. 0 means that there is no cap.'),
    request_count: count('How many requests were forwarded. This is what the cap limits.'),
    cache_hit_count: count('How many requests were answered from the cache. They do not count towards the cap.'),
    created_at: timestamp('When the token was created.'),
    last_used_at: nullable(timestamp('When the token was last used; null if it never was.')),
    obfuscated: string('The secret with most of it hidden, to be recognised.'),
  })
  .describe('A token, without its secret.');

export const tokenExample: z.input<typeof token> = {
  id: EXAMPLE_IDS.token,
  project_id: EXAMPLE_IDS.project,
  name: 'nightly tests',
  is_active: true,
  state: 'active',
  expires_at: '2030-02-07T12:00:00.000Z',
  max_requests: 1000,
  request_count: 42,
  cache_hit_count: 7,
  created_at: '2030-01-31T12:00:00.000Z',
  last_used_at: '2030-01-31T12:34:56.789Z',
  obfuscated: 'sk-wt-…3kQ9',
};

export const tokenCreated = token
  .extend({ token: string('The secret, `sk-wt-…`: the API key that a client of /v1 sends. It is shown here only.') })
  .describe('A token that was just created, with its secret.');

export const message = z.strictObject({ message: string('What was done, for people.') }).describe('What was done.');

export const tokensRevoked = message
  .extend({ revoked_count: count('How many tokens were revoked. Those that were revoked before are not counted.') })
  .describe('How many tokens were revoked.');
