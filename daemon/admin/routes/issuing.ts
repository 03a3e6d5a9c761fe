/** The form for a new token, and the page that shows its secret once. */
import { termsThat } from '../../../console/columns/tokens.js';
import { ApiError } from '../../api/client.js';
import type { TokenCreate } from '../../api/contract.js';
import { MAX_DURATION_HOURS } from '../../api/vocabulary.js';
import { newTokenPage, secretPage } from '../pages/new-token.js';
import { type TokenFormValues, EMPTY_TOKEN_FORM, formLike } from '../pages/token-terms.js';
import {
  allProjects,
  changed,
  formValues,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';

async function newToken(request: PageRequest, given: TokenFormValues, refused: string | null): Promise<PageResponse> {
  const { client } = request;
  const [projects, like] = await Promise.all([
    allProjects(client, { is_active: 'true' }),
    given.like === '' ? null : client.token(given.like),
  ]);
  const body = newTokenPage({ projects, given, like, refused });
  return { title: like ? 'Issue again' : 'New token', section: 'tokens', body, ...statusOf(refused) };
}

const MINUTES_PER: Readonly<Record<string, number>> = { minutes: 1, hours: 60, days: 24 * 60 };

/** @param what label of the field, for the error message. @throws {ApiError} if the text is not a whole number. */
function parseWholeNumber(text: string, what: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw invalidRequest(`${what} must be a whole number`);
}

/** @throws {ApiError} with the limit in the unit of the form. */
function parseMinutes(duration: string, unit: string): number {
  const what = 'the lifetime';
  const amount = parseWholeNumber(duration, what);
  const minutes = Object.hasOwn(MINUTES_PER, unit) ? MINUTES_PER[unit] : undefined;
  if (minutes === undefined) throw invalidRequest('the unit must be minutes, hours or days');
  const most = Math.floor((MAX_DURATION_HOURS * 60) / minutes);
  if (amount < 1 || amount > most) throw invalidRequest(`${what} must be from 1 to ${most} ${unit}`);
  return amount * minutes;
}

function tokenCreateOf(given: TokenFormValues): TokenCreate {
  const terms: Record<string, string | number> = {};
  for (const { field } of termsThat(false)) if (given[field] !== '') terms[field] = given[field];
  for (const { field, label } of termsThat(true)) {
    if (given[field] !== '') terms[field] = parseWholeNumber(given[field], `the ${label.toLowerCase()}`);
    // Without a value the new token would have that of the other one.
    else if (given.like !== '') terms[field] = 0;
  }
  const like = given.like === '' ? {} : { like: given.like };
  return {
    project_id: given.project_id,
    ...like,
    ...terms,
    duration_minutes: parseMinutes(given.duration, given.unit),
  };
}

/** Creates the token and passes its secret to the next page in a cookie: only this response has it, and reloading must not create another token. */
function issue(request: PageRequest): Promise<PageResponse> {
  const given = formValues(request.form, EMPTY_TOKEN_FORM);
  return changed(
    async () => {
      const { id, token } = await request.changeClient.createToken(tokenCreateOf(given)).catch(asFormError);
      const to = `tokens/${id}/secret`;
      request.storeSecret(to, token);
      return to;
    },
    (refused) => newToken(request, given, refused),
  );
}

/** Turns a missing project into an error of the form, which is shown again with the entered values. */
function asFormError(error: unknown): never {
  throw error instanceof ApiError && error.status === 404 ? invalidRequest(error.message, error.code) : error;
}

export const issuingRoutes = [
  get('/tokens/new', async (request) => {
    const like = request.query.get('like') ?? '';
    const given =
      like === ''
        ? { ...EMPTY_TOKEN_FORM, project_id: request.query.get('project_id') ?? '' }
        : formLike(await request.client.token(like));
    return newToken(request, given, null);
  }),
  post('/tokens/new', issue),
  get('/tokens/:id/secret', async (request) => {
    const token = await request.client.token(request.id);
    return {
      title: 'Token issued',
      section: 'tokens',
      body: secretPage({ token, secret: request.takeSecret(), baseUrl: request.baseUrl }),
    };
  }),
];
