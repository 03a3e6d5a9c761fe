/** Tokens, which clients of /v1 use as their API key. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';
import { tokenVersion } from './versions.js';

const LIST_DESCRIPTION = `Lists tokens that match all given filters. \`state\` and \`project_id\` accept several values, separated by commas: one of them must
match, or none of them with a leading \`!\`. \`active_only=true\` is the same as \`state=active\`; combined with another \`state\` it returns 400.
\`expires_after\` and \`expires_before\` also accept a duration relative to the time of the request, for example \`expires_before=2h\`; \`created_after\`
and \`created_before\` accept how long ago, for example \`created_after=7d\`. \`idle_over=30d\` matches tokens that nobody has used for 30 days. \`errors_over\`
and \`model\` go by the daily usage since yesterday 00:00 UTC, which is written a few seconds after the requests. \`used_over\`
and \`used_under\` match only tokens that have a cap.`;

export const tokens = {
  createToken: {
    ...ROUTES.createToken,
    permission: 'issue tokens',
    tag: 'Tokens',
    summary: 'Create a token',
    description:
      'The token is valid for 24 hours by default; set `duration_hours` or `duration_minutes` to change that. With `like`, it has the terms of another token, for example one that has expired. Only this response contains the secret; it cannot be retrieved later.',
    body: schemas.tokenCreate,
    status: 201,
    response: schemas.tokenCreated,
    holdsSecret: true,
    refusals: ['not_found', 'beyond_ceiling', 'token_for_inactive_project'],
    example: {
      bodies: {
        'for a week, 1000 requests': {
          project_id: EXAMPLE_IDS.project,
          duration_hours: 168,
          max_requests: 1000,
          name: 'nightly tests',
        },
        'for 15 minutes': { project_id: EXAMPLE_IDS.project, duration_minutes: 15 },
        'like another token': { like: EXAMPLE_IDS.token },
      },
      response: {
        ...schemas.tokenExample,
        request_count: 0,
        cache_hit_count: 0,
        last_used_at: null,
        token: 'sk-wt-EXAMPLE-the-secret-is-shown-here-only-3kQ9',
      },
    },
  },
  listTokens: {
    ...ROUTES.listTokens,
    permission: 'read tokens',
    tag: 'Tokens',
    summary: 'List tokens',
    description: LIST_DESCRIPTION,
    query: schemas.tokenQuery,
    aliases: { projectId: 'project_id' }, // Clients of the Go implementation use this spelling.
    list: schemas.token,
    refusals: [],
    example: {
      query: {
        limit: 50,
        project_id: EXAMPLE_IDS.project,
        state: 'active,rate_limited',
        expires_before: '2h',
        sort: 'expires_at',
      },
      response: [schemas.tokenExample],
    },
  },
  lookUpToken: {
    ...ROUTES.lookUpToken,
    permission: 'read tokens',
    tag: 'Tokens',
    summary: 'Find a token by its secret',
    description: 'Returns the token with this secret. The secret is not written to the log or the audit log.',
    body: schemas.tokenLookup,
    response: schemas.token,
    refusals: ['not_found'],
    example: {
      bodies: { 'a secret': { token: 'sk-wt-EXAMPLE-the-secret-is-shown-here-only-3kQ9' } },
      response: schemas.tokenExample,
    },
  },
  readToken: {
    ...ROUTES.readToken,
    permission: 'read tokens',
    tag: 'Tokens',
    summary: 'Get a token',
    description: 'Returns the token with this ID, without its secret.',
    response: schemas.token,
    version: tokenVersion,
    refusals: ['not_found'],
    example: { response: schemas.tokenExample },
  },
  updateToken: {
    ...ROUTES.updateToken,
    permission: 'revoke or change tokens',
    parts: [{ what: 'other than to revoke it', permission: 'change tokens' }],
    tag: 'Tokens',
    summary: 'Change a token',
    description:
      'Revokes or reactivates a token, or changes what it may ask for and spend. Works in any state of the token. A reactivated token keeps its expiry and its cap. `allow`, `limits` and `budget` are replaced as a whole, and removed with null, from the next request on.',
    body: schemas.tokenPatch,
    response: schemas.token,
    version: tokenVersion,
    refusals: ['not_found', 'beyond_ceiling', 'precondition_failed'],
    example: {
      bodies: {
        revoke: { is_active: false },
        reactivate: { is_active: true },
        restrict: { allow: { models: ['gpt-5-mini'] } },
        'cap at 20 dollars a month': { budget: { usd: '20.00', period: 'month' } },
      },
      response: schemas.tokenExample,
    },
  },
  revokeToken: {
    ...ROUTES.revokeToken,
    permission: 'revoke tokens',
    tag: 'Tokens',
    summary: 'Revoke a token',
    description: 'Also ends the in-flight requests of the token. Revoking a revoked token succeeds.',
    response: schemas.message,
    version: tokenVersion,
    refusals: ['not_found', 'precondition_failed'],
    example: { response: { message: 'token revoked' } },
  },
} as const satisfies Partial<Declared>;
