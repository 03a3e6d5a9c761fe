/** The token of a command that `llmp run` runs: issued with the management token, or exchanged for a JWT. It ends with the command. */
import { ApiError } from '../../daemon/api/client.js';
import type { WireToken, WireTokenCreated } from '../../daemon/api/contract.js';
import { isRetryable } from '../../daemon/api/follow-stream.js';
import { counted, exact } from '../../daemon/api/formats.js';
import { type Dialect, dialectOf } from '../../daemon/api/providers.js';
import type { TokenSelf } from '../../daemon/api/token-self.js';
import { shortId } from '../../console/columns/cell-text.js';
import { Failure, failureOf, usage } from '../../console/failure.js';
import type { Invocation } from '../command.js';
import { connectionTo } from '../connection/connection.js';
import { exchanged, jwtIn, jwtOptions } from '../connection/exchange.js';
import { endToken, tokenSelf } from '../connection/probes.js';
import type { Values } from '../option.js';
import { issuingOptions, tokenWanted } from './issuing.js';

export interface TemporaryToken {
  /** The API of its project; null if that is known only once there is the token. */
  dialectBefore(): Promise<Dialect | null>;
  /** Asks for the confirmations that a change needs. */
  confirm(): Promise<void>;
  /** @returns the secret. @param signal gives up: the secret is lost then, so nobody can use the token. */
  begin(signal: AbortSignal): Promise<string>;
  /** The API of its project, once there is the token. */
  dialect(): Promise<Dialect>;
  /** Reports failures and does not throw, so that the exit code stays that of the command. */
  end(): Promise<void>;
}

export const termOptions = issuingOptions(1, "name of the token (default: the command's name)");
type Terms = Values<typeof termOptions>;

/** A token with these terms. It connects at once. @param name of the token, if the options have none. */
export async function issuedToken(invocation: Invocation, terms: Terms, name: string): Promise<TemporaryToken> {
  const { shell, output, server } = invocation;
  const defaults = { duration: { duration_hours: 1 }, name };
  const { client, body } = await tokenWanted({ ...invocation, options: { ...defaults, ...terms } });
  let issued: WireTokenCreated;
  const dialect = async () =>
    body.project_id === undefined ? 'openai' : dialectOf(await client.project(body.project_id));
  return {
    dialectBefore: dialect,
    dialect,
    confirm: () => client.confirmChange(),
    async begin(signal) {
      issued = await client.createToken(body, signal);
      output.trace(`issued ${issued.id} until ${issued.expires_at}`);
      return issued.token;
    },
    async end() {
      const { id, expires_at: expiry } = issued;
      const attempt = () => client.updateToken(id, { is_active: false }, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS));
      try {
        const token = await withRetries(attempt, shell);
        output.note(`${usageSummary(token)} Revoked ${shortId(id)}.`);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return; // The token was deleted together with its project.
        output.fail(notEnded(failureOf(error, server), shortId(id), expiry, `Revoke it: llmp token revoke ${id}`));
      }
    },
  };
}

type JwtGiven = Values<typeof jwtOptions> & Terms;

/** A token that is exchanged for the JWT of the options. @throws {Failure} if they say its terms too. */
export function exchangedToken(invocation: Invocation, given: JwtGiven): TemporaryToken {
  const { shell, output, server } = invocation;
  const excluded = Object.entries(termOptions).find(([key]) => given[key as keyof Terms] !== undefined);
  if (excluded) {
    const [, { flags }] = excluded;
    throw usage(`--exchange and ${flags.replace(/ .*/, '')} exclude each other`, {
      advice: 'The terms of the token are those of the trust',
    });
  }
  const connection = connectionTo(invocation);
  const atEnd = { ...connection, timeoutMs: ATTEMPT_TIMEOUT_MS };
  let secret = '';
  let expiresMs = 0;
  return {
    dialectBefore: () => Promise.resolve(null),
    dialect: async () => (await tokenSelf(connection, secret)).dialect,
    confirm: () => Promise.resolve(),
    async begin(signal) {
      const { shown, isClearText } = connection.server;
      if (isClearText) output.warn(`the JWT is sent to ${shown} in clear text; use https`);
      const jwt = await jwtIn(given, invocation, connection.timeoutMs);
      const { access_token, expires_in } = await exchanged(connection, jwt, signal);
      secret = access_token;
      expiresMs = shell.now() + expires_in * 1000;
      return secret;
    },
    async end() {
      const last = await tokenSelf(atEnd, secret).catch(() => null);
      try {
        await withRetries(() => endToken(atEnd, secret), shell);
        output.note(`${last ? `${usageSummary(last)} ` : ''}Ended the token.`);
      } catch (error) {
        const expiry = new Date(expiresMs).toISOString();
        output.fail(notEnded(failureOf(error, server), last ? shortId(last.id) : '', expiry, 'It ends by itself then'));
      }
    },
  };
}

const notEnded = ({ exitCode, explanation, sentence }: Failure, id: string, expiry: string, advice: string) =>
  new Failure(exitCode, `could not revoke ${`token ${id}`.trim()}; it can be used until ${expiry}`, {
    ...explanation,
    why: sentence,
    advice,
  });

// Together about as long as a restart of the daemon takes.
const RETRY_DELAYS_MS = [250, 500, 1000, 2000, 4000];
const ATTEMPT_TIMEOUT_MS = 3_000;

async function withRetries<T>(attempt: () => Promise<T>, { pause }: Pick<Invocation['shell'], 'pause'>): Promise<T> {
  const never = new AbortController().signal;
  for (const delayMs of RETRY_DELAYS_MS) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error)) throw error;
      await pause(delayMs, never);
    }
  }
  return attempt();
}

type Used = Pick<TokenSelf, 'request_count' | 'max_requests'> & Partial<Pick<WireToken, 'cache_hit_count'>>;

function usageSummary({ request_count: uses, max_requests: cap, cache_hit_count: hits = 0 }: Used): string {
  const requests = cap === 0 ? counted(uses, 'request') : `${exact(uses)} of ${counted(cap, 'request')}`;
  return `Used ${requests}${hits === 0 ? '' : `, plus ${counted(hits, 'cache hit')}`}.`;
}
