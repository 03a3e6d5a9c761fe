/** `llmp token …`: lists, shows, revokes and reactivates tokens. Issuing is in token-generate.ts. */
import { oneOf } from '../../config/kinds.js';
import type { ManagementClient, Page } from '../../daemon/api/client.js';
import type { TokenQuery, WireToken, WireTokenState } from '../../daemon/api/contract.js';
import { MAX_PAGE_SIZE, TOKEN_SORT_FIELDS, TOKEN_SORT_ORDERS, TOKEN_STATES } from '../../daemon/api/vocabulary.js';
import { type BatchChange, dryRun, onEachId, TOKENS } from '../batch.js';
import { command, type Invocation } from '../command.js';
import { flag, text, value, valuesOf } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { ISSUERS } from '../../console/query/values.js';
import { idsIn, onlyProject } from '../filters.js';
import { shownSecret } from '../../daemon/api/tokens-of-secret.js';
import { wholeIdOf } from '../ids.js';
import { limit, listed } from '../listing.js';
import { queryArgument, queryIn, termKind, withOptions, withTokensShown } from '../query.js';
import { changeSelected, revokeTokensOf } from './revoke-all.js';
import { span } from '../../console/span.js';
import { exchange } from './token-exchange.js';
import { generate } from './token-generate.js';
import { print } from './token-print.js';
import { update } from './token-update.js';
import { TOKENS_REVOKED_FIELDS, tokenView } from '../../console/views.js';
import { TOKEN_FIELDS } from '../../console/columns/tokens.js';

// One page of the API, which is more than a screen can show.
const WATCH_LIMIT = MAX_PAGE_SIZE;
const sortOrder = oneOf(...TOKEN_SORT_ORDERS);

const shareOfCap = termKind('tokens', 'used', 'a percentage with a sign, such as >90% or <10%');
const age = termKind('tokens', 'created', 'a time ago or a time with a sign, such as <7d or >2030-01-31');
const errorCount = termKind('tokens', 'errors', 'a whole number', '>');
const modelName = termKind('tokens', 'model', 'a part of the name of a model, without spaces');
const issuer = termKind('tokens', 'by', ISSUERS);
const idleTime = termKind('tokens', 'idle', 'a time such as 12h, 30d or 8w', '>');

const list = command({
  path: ['manage', 'token', 'list'],
  summary: 'list tokens',
  examples: [
    ['token list --active-only --sort expires_at', 'list active tokens; those that expire next come first'],
    ['token list --sort -last_used_at --watch', 'refresh every 2 seconds; recently used tokens come first'],
    ['token list --state active --state rate_limited', 'list tokens in one of two states'],
    ['token list --expires-within 2h -o csv', 'list tokens that expire in the next 2 hours, for a spreadsheet'],
    ['token list --idle 30d -o id | llmp token revoke - --yes', 'revoke all tokens that were not used for 30 days'],
    ["token list 'project:web expires:<2h used:>90%'", 'list tokens that a query selects: llmp help query'],
  ],
  argument: queryArgument('tokens', "'project:web expires:<2h'"),
  options: {
    ...onlyProject,
    activeOnly: flag('--active-only', 'only active tokens'),
    state: valuesOf('--state <STATE>', TOKEN_STATES, `only tokens in these states: ${TOKEN_STATES.join(', ')}`),
    search: text('--search <TEXT>', 'only tokens whose name contains this text, or whose ID starts with it'),
    used: value(
      '--used <SHARE>',
      shareOfCap,
      "only tokens that have used more or less of their cap, for example '>90%'",
    ),
    idle: value('--idle <TIME>', idleTime, 'only tokens that were not used for this time, for example 30d'),
    errors: value('--errors <N>', errorCount, 'only tokens with more failures than this since yesterday (UTC)'),
    model: value(
      '--model <NAME>',
      modelName,
      'only tokens used since yesterday (UTC) for a model with this in its name',
      'model',
    ),
    created: value(
      '--created <AGE>',
      age,
      "only tokens that were created less or more than this time ago, for example '<7d'",
    ),
    expiresWithin: value('--expires-within <TIME>', span, 'only tokens that expire within this time, for example 2h'),
    issuedBy: value(
      '--issued-by <ACTOR>',
      issuer,
      `only tokens of this issuer: ${ISSUERS}; another name alone is that of an operator`,
    ),
    sort: value(
      '--sort <FIELD>',
      sortOrder,
      `sort by ${TOKEN_SORT_FIELDS.join(', ')}; prefix with - for descending order`,
    ),
    limit,
    watch: flag('--watch', 'refresh every 2 seconds until interrupted; when piped, print only new and changed tokens'),
  },
  async run(invocation) {
    const { args, options, shell, output, connect } = invocation;
    if (options.watch && (options.limit ?? 0) > WATCH_LIMIT) {
      throw usage(`with --watch, --limit must be at most ${WATCH_LIMIT}`);
    }
    const ids = idsIn(options);
    const client = await connect();
    const selected = await ids(client);
    const { query: given } = await queryIn(args, 'tokens', client);
    const search = options.search === undefined ? undefined : await withTokensShown(options.search, client);
    const queryOf = (nowMs: number): TokenQuery =>
      withOptions(given, {
        ...selected,
        ...(options.activeOnly && { active_only: 'true' }),
        ...(options.state && { state: options.state }),
        ...(search !== undefined && { q: search }),
        ...options.used,
        ...options.idle,
        ...options.errors,
        ...options.model,
        ...options.created,
        ...options.issuedBy,
        ...(options.sort && { sort: options.sort }),
        ...(options.expiresWithin !== undefined && {
          expires_after: new Date(nowMs).toISOString(),
          expires_before: new Date(nowMs + options.expiresWithin).toISOString(),
        }),
      });
    if (options.watch) {
      const size = String(options.limit ?? WATCH_LIMIT);
      const page = (signal: AbortSignal) => client.tokens({ ...queryOf(shell.now()), limit: size }, signal);
      return watchTokens(page, invocation);
    }
    const query = queryOf(shell.now());
    const tokens = await listed((page) => client.tokens({ ...query, ...page }), options.limit, output);
    await output.list(tokens, tokenView);
    if (tokens.length === 0) output.note('No matching tokens.');
    return EXIT.done;
  },
});

/** @param page fetches the current page of tokens. */
async function watchTokens(
  page: (signal: AbortSignal) => Promise<Page<WireToken>>,
  invocation: Pick<Invocation, 'shell' | 'output' | 'server'>,
): Promise<number> {
  const { watch } = await import('../watch.js');
  let known: Page<WireToken> = { items: [], next: null, total: 0 };
  return watch(invocation, {
    fetch: async (signal) => ({ item: (known = await page(signal)), failure: null }),
    unreachableItem: () => known,
    show: ({ items, total }, failure) =>
      invocation.output.refreshList(items, tokenView, { total: total ?? items.length, failure }),
  });
}

const TOKEN = {
  noun: 'token',
  view: tokenView,
  lookUp: (client: ManagementClient, id: string) => client.token(id),
} as const;

const get = command({
  path: ['manage', 'token', 'get'],
  summary: 'show tokens, with their request counts',
  examples: [['token get 3fa91c2e', 'show a token by the first characters of its ID']],
  argument: TOKENS,
  options: {},
  run: (invocation) => onEachId(invocation, TOKEN),
});

const revoke = command({
  path: ['manage', 'token', 'revoke'],
  summary: 'revoke tokens',
  examples: [
    ['token revoke 3fa91c2e --reason "leaked in CI log"', 'revoke a token, and record a reason in the audit log'],
    ['token list -o id --state expired | llmp token revoke - --yes', 'revoke all expired tokens'],
    ['token revoke --project-id web --yes', 'revoke all tokens of a project'],
    ["token revoke --query 'project:web idle:>30d' -n", 'show which tokens would be revoked'],
    ["token revoke --query 'project:web idle:>30d'", 'revoke tokens that a query selects, after a confirmation'],
  ],
  argument: { ...TOKENS, required: false },
  options: {
    projectId: text('--project-id <ID>', 'revoke all tokens of this project, by name or ID', 'project'),
    query: text(
      '--query <QUERY>',
      "revoke the tokens that a query selects, for example 'project:web idle:>30d'; see llmp help query",
      'query of tokens',
    ),
    dryRun,
  },
  prints: ({ options: { projectId, dryRun: isDry } }) =>
    projectId === undefined || isDry ? TOKEN_FIELDS : TOKENS_REVOKED_FIELDS,
  run(invocation) {
    const { args, options } = invocation;
    const { projectId, query } = options;
    const given = [...(args.length > 0 ? ['token IDs'] : []), ...(projectId === undefined ? [] : ['--project-id'])];
    if (query !== undefined) given.push('--query');
    if (given.length > 1) throw usage(`${given.join(' and ')} exclude each other`, { advice: 'Use one of them' });
    if (projectId !== undefined) return revokeTokensOf(projectId, options.dryRun === true, invocation);
    const command = { ...TOKEN, change: revocationChange };
    if (query !== undefined) return changeSelected(query, invocation, command);
    if (args.length > 0) return onEachId(invocation, command);
    throw usage('no token given', { advice: 'Give token IDs, or use --project-id or --query' });
  },
});

const reactivate = command({
  path: ['manage', 'token', 'reactivate'],
  summary: 'reactivate revoked tokens',
  examples: [
    ['token reactivate 3fa91c2e', 'reactivate a token; expiry and request count do not change'],
    ['token reactivate - --yes < ids.txt', 'reactivate the tokens whose IDs are in a file'],
    ["token reactivate --query 'project:web ci' -n", 'show which tokens would be reactivated'],
  ],
  argument: { ...TOKENS, required: false },
  options: {
    query: text(
      '--query <QUERY>',
      "reactivate the revoked tokens that a query selects, for example 'project:web ci'; see llmp help query",
      'query of tokens',
    ),
    dryRun,
  },
  prints: () => TOKEN_FIELDS,
  run(invocation) {
    const { args, options } = invocation;
    const command = { ...TOKEN, change: reactivationChange };
    if (options.query === undefined) {
      if (args.length > 0) return onEachId(invocation, command);
      throw usage('no token given', { advice: 'Give token IDs, or use --query' });
    }
    if (args.length > 0) throw usage('token IDs and --query exclude each other', { advice: 'Use one of them' });
    return changeSelected(options.query, invocation, command);
  },
});

const revocationChange: BatchChange<WireToken> = {
  verb: 'Revoke',
  pastTense: 'Revoked',
  opposite: 'reactivate',
  // DELETE would respond with a message only; PATCH returns the token, so that its name can be shown.
  apply: (client, id) => client.updateToken(id, { is_active: false }),
  isApplied: ({ is_active }) => !is_active,
};

const reactivationChange: BatchChange<WireToken> = {
  verb: 'Reactivate',
  pastTense: 'Reactivated',
  opposite: 'revoke',
  apply: (client, id, options) => client.updateToken(id, { is_active: true }, options),
  isApplied: ({ is_active }) => is_active,
  remark: ({ state }) => (state === 'active' ? undefined : `It still cannot be used: ${UNUSABLE[state] ?? state}.`),
};

const UNUSABLE: Partial<Record<WireTokenState, string>> = {
  expired: 'it has expired',
  rate_limited: 'its cap is spent',
  project_inactive: 'its project is inactive',
};

const whois = command({
  path: ['manage', 'token', 'whois'],
  summary: 'find the token of a secret, or of what lists show of one',
  examples: [
    ['token whois', 'prompt for the secret'],
    ['token whois -o id < leaked.txt | llmp token revoke - --yes', 'revoke the token of a leaked secret'],
  ],
  options: {},
  async run({ input, output, connect }) {
    const secret = await input.secretFrom('-', 'the secret');
    if (shownSecret(secret) !== null) {
      const client = await connect();
      await output.one(await client.token(await wholeIdOf(client, 'token', secret)), tokenView);
      return EXIT.done;
    }
    // Other input, such as a provider's key pasted by mistake, must not be sent anywhere.
    if (!/^sk-wt-[0-9A-Za-z]+$/.test(secret)) {
      throw usage('this is not the secret of a token', { advice: 'Enter only the secret: sk-wt-…' });
    }
    const client = await connect();
    await output.one(await client.lookUpToken({ token: secret }), tokenView);
    return EXIT.done;
  },
});

export const tokenCommands = [generate, exchange, print, list, get, update, revoke, reactivate, whois];
