import type { WireTrust } from '../../daemon/api/contract.js';
import type { TestDaemon } from './daemon.js';
import { bodyOf } from './management.js';

export const EXCHANGE_FORM = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
};

export interface ExchangeAnswer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

/** @param form replaces parameters of the usual form; undefined ones are left out. @param url of a daemon. */
export async function exchange(
  { url }: Pick<TestDaemon, 'url'>,
  jwt: string,
  form: Record<string, string | undefined> = {},
  headers: Record<string, string> = {},
): Promise<ExchangeAnswer> {
  const given = Object.entries<string | undefined>({ ...EXCHANGE_FORM, subject_token: jwt, ...form });
  const body = new URLSearchParams(
    given.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])),
  );
  const response = await fetch(`${url}/token/exchange`, { method: 'POST', body, headers });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

/** Terms of a trust for the claim `repository` being `acme/web`. */
export const trustTerms = (issuer: string, projectId: string) => ({
  issuer,
  audience: 'llmp',
  match: { repository: 'acme/web' },
  project_id: projectId,
  duration_minutes: 30,
  name: 'gha {repository}#{run_id}',
});

/** @param fields replace those of `trustTerms`. */
export const createTrust = (
  daemon: Pick<TestDaemon, 'manage'>,
  issuer: string,
  projectId: string,
  fields: Record<string, unknown> = {},
): Promise<WireTrust> =>
  bodyOf<WireTrust>(daemon.manage('POST', '/manage/trusts', { ...trustTerms(issuer, projectId), ...fields }), 201);
