/** Tokens: what clients of /v1 use as their API key. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const FILTERING = `The filters narrow together. \`state\` and \`project_id\` take several values with commas between, of which one must
match; with \`!\` in front none may. \`active_only=true\` is \`state=active\`: with another \`state\` it is 400. \`expires_after\` and
\`expires_before\` also take spans, which are counted from each request: \`expires_before=2h\`. Only tokens with a cap have a share of it
that is \`used_over\` or \`used_under\` a percentage.`;

export const tokens = {
  createToken: {
    ...ROUTES.createToken,
    tag: 'Tokens',
    summary: 'Create a token',
    description:
      'The token is valid for 24 hours unless a duration is given, in hours or in minutes. Its secret is in this answer only: it cannot be shown again.',
    body: schemas.tokenCreate,
    status: 201,
    answer: schemas.tokenCreated,
    holdsSecret: true,
    refusals: ['not_found', 'token_for_inactive_project'],
    example: {
      bodies: {
        'for a week, 1000 requests': {
          project_id: EXAMPLE_IDS.project,
          duration_hours: 168,
          max_requests: 1000,
          name: 'nightly tests',
        },
        'for 15 minutes': { project_id: EXAMPLE_IDS.project, duration_minutes: 15 },
      },
      answer: {
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
    tag: 'Tokens',
    summary: 'List tokens',
    description: FILTERING,
    query: schemas.tokenQuery,
    aliases: { projectId: 'project_id' }, // As the older Go implementation's clients write it.
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
      answer: [schemas.tokenExample],
    },
  },
  lookUpToken: {
    ...ROUTES.lookUpToken,
    tag: 'Tokens',
    summary: 'Find a token by its secret',
    description: 'Shows the token that a secret belongs to. The secret is neither logged nor audited.',
    body: schemas.tokenLookup,
    answer: schemas.token,
    refusals: ['not_found'],
    example: {
      bodies: { 'a secret': { token: 'sk-wt-EXAMPLE-the-secret-is-shown-here-only-3kQ9' } },
      answer: schemas.tokenExample,
    },
  },
  readToken: {
    ...ROUTES.readToken,
    tag: 'Tokens',
    summary: 'Show a token',
    description: 'Shows a token by its id, without its secret.',
    answer: schemas.token,
    refusals: ['not_found'],
    example: { answer: schemas.tokenExample },
  },
  updateToken: {
    ...ROUTES.updateToken,
    tag: 'Tokens',
    summary: 'Revoke or reactivate a token',
    description: 'Works in whatever state the token is. A reactivated token keeps its expiry and its cap.',
    body: schemas.tokenPatch,
    answer: schemas.token,
    refusals: ['not_found'],
    example: {
      bodies: { revoke: { is_active: false }, reactivate: { is_active: true } },
      answer: schemas.tokenExample,
    },
  },
  revokeToken: {
    ...ROUTES.revokeToken,
    tag: 'Tokens',
    summary: 'Revoke a token',
    description: 'Ends the requests of the token that are on their way, too. Doing it again succeeds.',
    answer: schemas.message,
    refusals: ['not_found'],
    example: { answer: { message: 'token revoked' } },
  },
} as const satisfies Partial<Declared>;
