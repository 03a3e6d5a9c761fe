/** A new token, and the one page that shows its secret. */
import { ApiError } from '../../api/client.js';
import type { TokenCreate, TokenCreateTerms } from '../../api/contract.js';
import { MAX_DURATION_HOURS } from '../../api/vocabulary.js';
import { newTokenPage, secretPage } from '../pages/new-token.js';
import { type GivenToken, NOTHING_GIVEN } from '../pages/token-terms.js';
import { allProjects, type Answer, get, post, refusal, refusedBecause, statusOf, type Visit } from '../visit.js';

async function newToken(visit: Visit, given: GivenToken, refused: string | null): Promise<Answer> {
  const projects = await allProjects(visit.client(), { is_active: 'true' });
  const body = newTokenPage({ projects, given, refused });
  return { title: 'New token', section: 'tokens', body, ...statusOf(refused) };
}

const givenIn = (form: URLSearchParams): GivenToken =>
  Object.fromEntries(Object.keys(NOTHING_GIVEN).map((name) => [name, (form.get(name) ?? '').trim()])) as GivenToken;

const MINUTES_PER: Readonly<Record<string, number>> = { minutes: 1, hours: 60, days: 24 * 60 };

/** @throws {ApiError} for what is no number, in the words that the form has for it. */
function numberIn(text: string, what: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw refusal(`${what} must be a whole number`);
}

/** @throws {ApiError} in the unit that the form was filled in with. */
function minutesIn(duration: string, unit: string): number {
  const what = 'how long it is valid';
  const amount = numberIn(duration, what);
  const minutes = Object.hasOwn(MINUTES_PER, unit) ? MINUTES_PER[unit] : undefined;
  if (minutes === undefined) throw refusal('the unit must be minutes, hours or days');
  const most = Math.floor((MAX_DURATION_HOURS * 60) / minutes);
  if (amount < 1 || amount > most) throw refusal(`${what} must be from 1 to ${most} ${unit}`);
  return amount * minutes;
}

/** What was left empty is not asked for. */
const withoutEmpty = <T extends Record<string, string>>(texts: T) =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text === '' ? undefined : text])) as {
    [K in keyof T]: string | undefined;
  };

function tokenOf(given: GivenToken): TokenCreate {
  const { duration, unit, max_requests: most, project_id, ...texts } = given;
  const terms: TokenCreateTerms = {
    project_id,
    ...withoutEmpty(texts),
    max_requests: most === '' ? undefined : numberIn(most, 'the most requests'),
  };
  return { ...terms, duration_minutes: minutesIn(duration, unit) };
}

/** The secret is in the answer to the change alone. It must outlast the way to a page that can be asked for anew without another token. */
async function issue(visit: Visit): Promise<Answer> {
  const given = givenIn(visit.form);
  let to = '';
  const refused = await refusedBecause(async () => {
    const { id, token } = await visit.changing().createToken(tokenOf(given)).catch(projectGone);
    to = `tokens/${id}/secret`;
    visit.handOver(to, token);
  });
  return refused === null ? { to } : newToken(visit, given, refused);
}

/** The form stays, with all that was filled in. */
function projectGone(error: unknown): never {
  throw error instanceof ApiError && error.status === 404 ? refusal(error.message, error.code) : error;
}

export const issuingRoutes = [
  get('/tokens/new', (visit) =>
    newToken(visit, { ...NOTHING_GIVEN, project_id: visit.query.get('project_id') ?? '' }, null),
  ),
  post('/tokens/new', issue),
  get('/tokens/:id/secret', async (visit) => {
    const token = await visit.client().token(visit.params.id ?? '');
    return {
      title: 'Token issued',
      section: 'tokens',
      body: secretPage({ token, secret: visit.takeOver(), baseUrl: visit.baseUrl }),
    };
  }),
];
