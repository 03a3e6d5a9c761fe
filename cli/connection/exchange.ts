/** Exchanges a JWT of an issuer for a token: `POST /token/exchange` (RFC 8693). The JWT is the credential. */
import { apiErrorOf, jsonOf, NOT_LLMP, Unreachable } from '../../daemon/api/client.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import type { Invocation } from '../command.js';
import { text, type Values } from '../option.js';
import type { DaemonConnection } from './connection.js';
import { fetchWithHttp } from './http-client.js';
import { asked } from './probes.js';
import { serverOf } from './server.js';

const EXCHANGE_PATH = '/token/exchange';

/** The response, as RFC 8693 names its members. */
export interface Exchanged {
  /** The secret of the token. */
  access_token: string;
  issued_token_type: string;
  token_type: string;
  /** Seconds. */
  expires_in: number;
}

/** @throws {ApiError} @throws {Unreachable} */
export async function exchanged(connection: DaemonConnection, jwt: string, signal?: AbortSignal): Promise<Exchanged> {
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: jwt,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const found = await asked(connection, EXCHANGE_PATH, { method: 'POST', headers, body, signal }, async (response) => {
    if (!response.ok) throw await apiErrorOf(response);
    return (await jsonOf(response)) as Partial<Exchanged> | null;
  });
  if (typeof found?.access_token !== 'string') throw new Unreachable(NOT_LLMP);
  return found as Exchanged;
}

/** Where the JWT is from. */
export const jwtOptions = {
  jwtFile: text('--jwt-file <FILE>', 'file with the JWT of the job or pod; - is standard input'),
  audience: text(
    '--audience <TEXT>',
    'in GitHub Actions, in place of --jwt-file: ask for a JWT with this audience; the job needs permissions: id-token: write',
  ),
};

const GITHUB_URL = 'ACTIONS_ID_TOKEN_REQUEST_URL';
const GITHUB_TOKEN = 'ACTIONS_ID_TOKEN_REQUEST_TOKEN';
/** With these a command could get more JWTs. */
export const GITHUB_VARIABLES: readonly string[] = [GITHUB_URL, GITHUB_TOKEN];

/**
 * Reads the JWT, or asks GitHub Actions for one.
 *
 * @throws {Failure} without a source, and for a text that is not a JWT, which is not sent anywhere.
 */
export async function jwtIn(
  { jwtFile, audience }: Values<typeof jwtOptions>,
  { shell: { env }, input }: Pick<Invocation, 'shell' | 'input'>,
  timeoutMs: number,
): Promise<string> {
  if (jwtFile !== undefined && audience !== undefined) {
    throw usage('--jwt-file and --audience exclude each other', { advice: 'Use one of them' });
  }
  if (jwtFile !== undefined) {
    return checkedJwt(
      (await input.secretFrom(jwtFile, 'the JWT')).trim(),
      jwtFile === '-' ? 'standard input' : jwtFile,
    );
  }
  if (audience !== undefined) return jwtOfGitHub(env, audience, timeoutMs);
  throw usage('no JWT given', { advice: 'Add --jwt-file FILE, or in GitHub Actions --audience TEXT' });
}

function checkedJwt(given: string, from: string): string {
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(given)) return given;
  throw usage(`there is no JWT in ${from}`, { why: 'a JWT has three parts, separated by dots' });
}

/** As GitHub documents it for OpenID Connect in cloud providers. @throws {Failure} */
async function jwtOfGitHub(env: NodeJS.ProcessEnv, audience: string, timeoutMs: number): Promise<string> {
  const { [GITHUB_URL]: address = '', [GITHUB_TOKEN]: token } = env;
  if (!token || !URL.canParse(address)) {
    throw usage(`${GITHUB_URL} and ${GITHUB_TOKEN} are not set`, {
      why: 'GitHub Actions sets them for jobs that may ask for a JWT',
      advice: 'Give the job permissions: id-token: write, or use --jwt-file FILE',
    });
  }
  const url = new URL(address);
  const server = serverOf(url.origin, GITHUB_URL);
  if (server.isClearText) throw usage(`${GITHUB_URL} must begin with https://`);
  url.searchParams.set('audience', audience);
  const connection = { server, fetch: fetchWithHttp(), timeoutMs };
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  const answer = await asked(connection, url.pathname + url.search, { headers }, async (response) => ({
    status: response.status,
    body: await jsonOf(response),
  })).catch((error: unknown) => {
    if (!(error instanceof Unreachable)) throw error;
    throw refusedByGitHub(error.message, error);
  });
  const { status, body } = answer;
  const value = typeof body === 'object' && body !== null && 'value' in body ? body.value : null;
  if (status !== 200 || typeof value !== 'string') throw refusedByGitHub(`it responded with ${status}`);
  return checkedJwt(value, 'the response of GitHub Actions');
}

const refusedByGitHub = (why: string, cause?: unknown) =>
  new Failure(EXIT.unreachable, 'GitHub Actions did not give a JWT', { code: 'no_jwt', why, cause });
