/**
 * `GET /token/self`: a client asks about its own token. The checks are those of /v1 in the same order, except that a cap that is used up is
 * no reason to refuse. Nothing is counted or recorded. `DELETE /token/self` ends the token.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Live } from '../../../config/settings.js';
import { dialectOf } from '../../api/providers.js';
import { usdOf } from '../../api/money.js';
import { type SelfBudget, TOKEN_SELF_PATH, type TokenSelf } from '../../api/token-self.js';
import type { Budget, BudgetOwner, Limits } from '../../api/vocabulary.js';
import type { Account } from '../../core/account.js';
import type { Admission, InspectedToken } from '../../core/admission.js';
import { leftIn, type Spent } from '../../core/budget/spending.js';
import type { Clock } from '../../core/ports.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { Refusal, unauthorized, unavailable } from '../../core/refusal.js';
import type { Registry } from '../../core/registry.js';
import { type AddressOf, checkNoCredentialIn, presentedTokenIn, requestIdOf } from '../client-identity.js';
import { corsFields, type CorsSettings, preflightFields } from '../cors.js';
import { checkShape, pathOf, type RequestFields, VARY_BY_CARRIER } from '../request-head.js';
import { asRefusal, sendProblem } from '../problems.js';
import { REFUSAL_HEADERS } from '../proxy/client-response.js';
import { wireSpent } from '../spent.js';
import { wordingFor, type WordingSettings } from '../wording.js';

export interface TokenSelfOptions {
  admission: {
    identify(secret: string, digest: string): Promise<Account>;
    inspect(account: Account): Promise<InspectedToken>;
    limitsLeft(account: Account): ReturnType<Admission['limitsLeft']>;
  };
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countSelf'>;
  addressOf: AddressOf;
  /** Ends a token; in a worker: passes the request to the primary. */
  ending: { endToken: Registry['endToken'] } | RequestListener;
  /** False until the database is connected, and after draining has ended. */
  isServing: () => boolean;
  clock: Pick<Clock, 'now'>;
  /** The current settings: SIGHUP may replace them. */
  live: Live<keyof (CorsSettings & WordingSettings)>;
}

export type TokenSelfHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

export const isTokenSelf = (target: string): boolean => pathOf(target) === TOKEN_SELF_PATH;

/** @returns a handler that never rejects. */
export function tokenSelfHandler(options: TokenSelfOptions): TokenSelfHandler {
  return async (req, res) => {
    const settings = options.live.current;
    const requestId = requestIdOf(req.headers['x-request-id']);
    try {
      const fields = checkShape(req, 0);
      if (req.method === 'OPTIONS') {
        res.writeHead(204, { ...REFUSAL_HEADERS, ...preflightFields(settings, req), 'X-Request-ID': requestId }).end();
        return;
      }
      if (req.method === 'DELETE') {
        if (typeof options.ending === 'function') {
          options.ending(req, res);
          return;
        }
        const { tokenId } = await identified(req, fields, options);
        const clientIp = options.addressOf(req.socket, fields.forwardedFor);
        await options.ending.endToken(tokenId, { requestId, clientIp });
        res.writeHead(204, { 'Cache-Control': 'no-store', 'X-Request-ID': requestId, ...corsFields(settings, req) });
        res.end();
        return;
      }
      const body = JSON.stringify(await tokenOf(req, fields, options));
      const { Vary: vary, ...cors } = corsFields(settings, req);
      res.writeHead(200, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': String(Buffer.byteLength(body)),
        'Cache-Control': 'no-store',
        'X-Request-ID': requestId,
        ...cors,
        Vary: vary === undefined ? VARY_BY_CARRIER : `${vary}, ${VARY_BY_CARRIER}`,
      });
      res.end(req.method === 'HEAD' ? undefined : body);
    } catch (error) {
      if (res.closed) return;
      const refusal = asRefusal(error);
      const headers = { ...REFUSAL_HEADERS, ...corsFields(settings, req) };
      sendProblem(res, refusal, requestId, headers, wordingFor(refusal, req, settings));
    }
  };
}

/** The account of the token of a request, within the limits. */
async function identified(
  req: IncomingMessage,
  fields: RequestFields,
  { admission, rateLimits, addressOf, isServing }: TokenSelfOptions,
): Promise<Account> {
  if (rateLimits.countsAddresses) await rateLimits.countAddress(addressOf(req.socket, fields.forwardedFor));
  if (req.method !== 'GET' && req.method !== 'HEAD' && req.method !== 'DELETE') {
    throw new Refusal('method_not_allowed', 'method not allowed', { allow: 'GET, HEAD, DELETE, OPTIONS' });
  }
  checkNoCredentialIn(req.url ?? '');
  if (!isServing()) throw unavailable();
  const presented = presentedTokenIn(fields, req.socket);
  if (presented === null) throw unauthorized();
  const account = await admission.identify(presented.secret, presented.digest);
  await rateLimits.countSelf(account.tokenId);
  return account;
}

async function tokenOf(req: IncomingMessage, fields: RequestFields, options: TokenSelfOptions): Promise<TokenSelf> {
  const { admission, clock } = options;
  const account = await identified(req, fields, options);
  const inspected = await admission.inspect(account);
  return shown(inspected, limitsIn(await admission.limitsLeft(account)), clock.now());
}

function limitsIn(scopes: Awaited<ReturnType<Admission['limitsLeft']>>): TokenSelf['limits'] {
  if (scopes.length === 0) return null;
  const lowest = (name: keyof Limits) => {
    const set = scopes.flatMap(({ scope: { limits }, left }) => {
      const { [name]: limit } = limits;
      return limit === undefined ? [] : [{ limit, remaining: left[name] ?? 0 }];
    });
    if (set.length === 0) return null;
    return {
      limit: Math.min(...set.map(({ limit }) => limit)),
      remaining: Math.min(...set.map(({ remaining }) => remaining)),
    };
  };
  return {
    requests_per_minute: lowest('requests_per_minute'),
    tokens_per_minute: lowest('tokens_per_minute'),
    concurrent: lowest('concurrent'),
  };
}

function budgetIn(owner: BudgetOwner, budget: Budget | null, spent: Spent): SelfBudget[] {
  if (budget === null) return [];
  const { nano, tokens } = leftIn(budget, spent);
  const left = { ...(nano !== null && { usd: usdOf(nano) }), ...(tokens !== null && { tokens }) };
  return [{ owner, ...budget, spent: wireSpent(spent), left }];
}

function shown(
  { token, upstreamAuth, projectPolicies, spent, projectSpent }: InspectedToken,
  limits: TokenSelf['limits'],
  nowMs: number,
): TokenSelf {
  const { id, name, createdAtMs, expiresAtMs, maxRequests, requestCount } = token;
  const remaining = maxRequests === 0 ? null : Math.max(0, maxRequests - requestCount);
  return {
    id,
    name,
    state: remaining === 0 ? 'rate_limited' : 'active',
    created_at: new Date(createdAtMs).toISOString(),
    expires_at: new Date(expiresAtMs).toISOString(),
    expires_in_s: Math.max(0, Math.floor((expiresAtMs - nowMs) / 1000)),
    max_requests: maxRequests,
    request_count: requestCount,
    requests_remaining: remaining,
    allow: [token.allow, projectPolicies.allow].filter((allow) => allow !== null),
    limits,
    spent: wireSpent(spent),
    budget: [...budgetIn('token', token.budget, spent), ...budgetIn('project', projectPolicies.budget, projectSpent)],
    server_time: new Date(nowMs).toISOString(),
    dialect: dialectOf({ upstream_auth: upstreamAuth }),
  };
}
