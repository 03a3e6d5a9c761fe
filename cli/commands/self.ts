/** `llmp self`: what the holder of a token is told about it. It needs no management token. */
import { type Kind, oneOf } from '../../config/kinds.js';
import { ApiError } from '../../daemon/api/client.js';
import { counted, exact, relativeTime } from '../../daemon/api/formats.js';
import { usdShown } from '../../daemon/api/money.js';
import { type SelfBudget, TOKEN_SELF_PATH, type TokenSelf } from '../../daemon/api/token-self.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { span } from '../../console/span.js';
import type { View } from '../../console/table.js';
import { shortId, stateShown, stateTint } from '../../console/columns/cell-text.js';
import {
  allowShown,
  budgetShown,
  LIMIT_NAMES,
  limitsShown,
  shareLeft,
  spentShown,
} from '../../console/columns/policies.js';
import { command, type Invocation } from '../command.js';
import { connectionTo, type DaemonConnection } from '../connection/connection.js';
import { tokenSelf } from '../connection/probes.js';
import { value } from '../option.js';
import { SDK_NAMES, SDKS, tokenIn, type TokenInEnvironment } from '../sdk-variables.js';

/** What is too little: a share of the lifetime, the cap and the budgets, or a time. */
type Threshold = { percent: number } | { ms: number };

const threshold: Kind<Threshold> = {
  accepts: 'a percentage such as 10%, or a time such as 30m',
  parse(given) {
    const [, percent] = /^(\d{1,3})%$/.exec(given) ?? [];
    if (percent !== undefined) return Number(percent) <= 100 ? { percent: Number(percent) } : undefined;
    const ms = span.parse(given);
    return ms === undefined ? undefined : { ms };
  },
};

export const selfCommand = command({
  path: ['self'],
  ignores: ['managementToken', 'managementTokenFile', 'reason'],
  summary: 'show what is left of the token in the environment',
  examples: [
    ['self', 'show the token in OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or another variable of an SDK'],
    ['self --warn 10% -q -o id', 'exit with 9 if less than a tenth of the lifetime, of the cap or of a budget is left'],
    ['self --for anthropic -o json', 'print the token in ANTHROPIC_API_KEY as JSON'],
  ],
  options: {
    for: value('--for <SDK>', oneOf(...SDK_NAMES), `only the variables of this SDK: ${SDK_NAMES.join(', ')}`),
    warn: value(
      '--warn <LEFT>',
      threshold,
      'exit with 9 if less of the lifetime, of the cap or of a budget is left, for example 10%, or less time, for example 30m',
    ),
  },
  async run(invocation) {
    const { options, output } = invocation;
    const sdks = options.for === undefined ? SDK_NAMES : [options.for];
    const found = tokenIn(invocation.shell.env, sdks);
    if (found === null) throw noToken(invocation.shell.env, sdks);
    const { connection, path } = addressOf(found, invocation);
    if (connection.server.isClearText) {
      output.warn(`the token is sent to ${connection.server.shown} in clear text; use https`);
    }
    const token = await tokenSelf(connection, found.token, path).catch((error: unknown) => {
      throw error instanceof ApiError ? refusedBy(error, connection.server.shown, found.variable) : error;
    });
    await output.one(token, selfView);
    const shortages = options.warn === undefined ? [] : shortagesOf(token, options.warn);
    for (const shortage of shortages) output.warn(shortage);
    return shortages.length > 0 ? EXIT.checkFailed : EXIT.done;
  },
});

function noToken(env: NodeJS.ProcessEnv, sdks: readonly (keyof typeof SDKS)[]): Failure {
  const names = sdks.flatMap((sdk): readonly string[] => SDKS[sdk].keys);
  const other = names.find((name) => env[name]);
  return usage(`there is no token in ${names.join(', ')}`, {
    ...(other !== undefined && { why: `${other} has another key, which is not sent anywhere` }),
    advice: 'Set one of them to a token: sk-wt-…',
  });
}

/** The address from the environment, or that of --server or --context. A base URL may have a path in front of the SDK's. */
function addressOf(
  { server, serverVariable }: TokenInEnvironment,
  invocation: Pick<Invocation, 'globals' | 'output' | 'destination'>,
): { connection: DaemonConnection; path: string } {
  const { server: given, context } = invocation.globals;
  if (server === null || given !== undefined || context !== undefined) {
    return { connection: connectionTo(invocation), path: TOKEN_SELF_PATH };
  }
  const url = URL.canParse(server) ? new URL(server) : null;
  if (url === null) throw usage(`${serverVariable} must be a URL such as http://127.0.0.1:8080/v1`);
  const { pathname } = url;
  if (url.search || url.hash) throw usage(`${serverVariable} must have no query and no fragment`);
  url.pathname = '/';
  const destination = () => ({ server: url.href, context: null });
  return {
    connection: connectionTo({ ...invocation, destination }),
    path: pathname.replace(/\/$/, '') + TOKEN_SELF_PATH,
  };
}

/** Errors about the token have other meanings than those about a management token. */
function refusedBy(error: ApiError, server: string, variable: string): Error {
  const explanation = { code: error.code, requestId: error.requestId, cause: error };
  if (error.status === 401) {
    return new Failure(EXIT.refused, `the daemon at ${server} refused the token in ${variable}`, {
      ...explanation,
      why: 'it is unknown, expired or revoked',
      advice: 'Ask its issuer for a new one',
    });
  }
  if (error.status === 404) {
    return new Failure(EXIT.notFound, `the daemon at ${server} has no ${TOKEN_SELF_PATH}`, {
      ...explanation,
      advice: 'Update the daemon, or check the base URL',
    });
  }
  if (error.code === 'project_inactive') {
    const advice = 'Ask the issuer of the token to activate the project';
    return new Failure(EXIT.conflict, 'the project of the token is inactive', { ...explanation, advice });
  }
  return error;
}

/** @returns a sentence for each. */
function shortagesOf(token: TokenSelf, wanted: Threshold): string[] {
  const { expires_in_s: leftS, created_at: created, expires_at: expiry } = token;
  const { max_requests: cap, requests_remaining: remaining } = token;
  const isSpent = remaining === 0;
  // A shadow budget refuses nothing.
  const budgets = token.budget
    .filter(({ mode }) => mode !== 'shadow')
    .map((budget) => ({
      of: `the budget of ${budget.owner === 'token' ? 'the token' : 'its project'}`,
      percent: 100 * (shareLeft({ budget, spent: budget.spent }) ?? 1),
    }));
  if ('ms' in wanted) {
    const endsSoon = leftS * 1000 < wanted.ms;
    return [
      ...(endsSoon ? [`the token expires in ${leftS} s`] : []),
      ...(isSpent ? ['no requests are left'] : []),
      ...budgets.filter(({ percent }) => percent === 0).map(({ of }) => `${of} is spent`),
    ];
  }
  const lifetimeS = (Date.parse(expiry) - Date.parse(created)) / 1000;
  const shares = [
    { of: 'the lifetime', percent: (100 * leftS) / lifetimeS },
    ...(remaining === null ? [] : [{ of: 'the requests', percent: (100 * remaining) / cap }]),
    ...budgets,
  ];
  return shares
    .filter(({ percent }) => percent < wanted.percent)
    .map(({ of, percent }) => `${Math.floor(percent)}% of ${of} is left, less than ${wanted.percent}%`);
}

const selfView: View<TokenSelf> = {
  idOf: ({ id }) => id,
  fields: [
    'id',
    'name',
    'state',
    'expires_at',
    'expires_in_s',
    'max_requests',
    'request_count',
    'requests_remaining',
    'server_time',
    'created_at',
    'dialect',
    'allow',
    'limits',
    'spent',
    'budget',
  ],
  columns: [
    { title: 'ID', rank: 0, show: ({ id }) => shortId(id) },
    { title: 'NAME', rank: 1, show: ({ name }) => name ?? '', shrinks: true },
    {
      title: 'STATE',
      rank: 0,
      show: ({ state }, render) => stateShown(state, render),
      tint: ({ state }) => stateTint(state),
    },
    { title: 'EXPIRES', rank: 2, show: ({ expires_at }, render) => relativeTime(expires_at, render.now) },
    { title: 'LEFT', rank: 3, show: ({ requests_remaining: left }) => String(left ?? 'unlimited'), alignRight: true },
  ],
  details: {
    state: ({ state }, render) => stateShown(state, render),
    expires_at: ({ expires_at }, render) => `${expires_at} (${relativeTime(expires_at, render.now)})`,
    max_requests: ({ max_requests }) => (max_requests === 0 ? 'unlimited' : String(max_requests)),
    requests_remaining: ({ requests_remaining: left }) => (left === null ? 'unlimited' : String(left)),
    allow: ({ allow }) => allow.map(allowShown).join(', and of these only ') || allowShown(null),
    limits: ({ limits }) => limitsLeft(limits),
    spent: ({ spent, budget }) => spentShown({ spent, budget: budget.find(({ owner }) => owner === 'token') ?? null }),
    budget: ({ budget }) => budget.map(budgetLeft).join('; ') || budgetShown(null),
  },
};

/** Such as `60 requests/min (12 left), 4 at a time (3 left)`. */
function limitsLeft(limits: TokenSelf['limits']): string {
  const set = LIMIT_NAMES.flatMap((name) => {
    const of = limits?.[name] ?? null;
    return of === null ? [] : [`${limitsShown({ [name]: of.limit })} (${exact(of.remaining)} left)`];
  });
  return set.length === 0 ? limitsShown(null) : set.join(', ');
}

/** Such as `$25 a month, soft ($12.35 left)`. */
function budgetLeft({ owner, left: { usd, tokens }, ...budget }: SelfBudget): string {
  const amounts = [usd && usdShown(usd), tokens !== undefined && counted(tokens, 'model token')].filter(Boolean);
  const whose = owner === 'project' ? 'for all tokens of its project ' : '';
  return `${whose}${budgetShown(budget)} (${amounts.join(' and ')} left)`;
}
