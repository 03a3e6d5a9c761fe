/** A new token, and the one page that shows its secret. */
import { ApiError } from '../../api/client.js';
import type { TokenCreate } from '../../api/contract.js';
import { MAX_DURATION_HOURS } from '../../api/vocabulary.js';
import { newTokenPage, type NewTokenProps, secretPage } from '../pages/new-token.js';
import { allProjects, type Answer, get, post, refusal, refusedBecause, statusOf, type Visit } from '../visit.js';

type Given = NewTokenProps['given'];

const BEFORE: Given = { projectId: '', name: '', duration: '24', unit: 'hours', maxRequests: '' };

async function newToken(visit: Visit, given: Given, refused: string | null): Promise<Answer> {
  const projects = await allProjects(visit.client(), { is_active: 'true' });
  const body = newTokenPage({ projects, given, refused });
  return { title: 'New token', section: 'tokens', body, ...statusOf(refused) };
}

function givenIn(form: URLSearchParams): Given {
  const field = (name: string) => (form.get(name) ?? '').trim();
  return {
    projectId: field('project_id'),
    name: field('name'),
    duration: field('duration'),
    unit: field('unit'),
    maxRequests: field('max_requests'),
  };
}

const MINUTES_PER: Readonly<Record<string, number>> = { minutes: 1, hours: 60, days: 24 * 60 };

/** @throws {ApiError} for what is no number, in the words that the form has for it. */
function numberIn(text: string, what: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw refusal(`${what} must be a whole number`);
}

/** @throws {ApiError} in the unit that the form was filled in with. */
function minutesIn({ duration, unit }: Given): number {
  const what = 'how long it is valid';
  const amount = numberIn(duration, what);
  const minutes = Object.hasOwn(MINUTES_PER, unit) ? MINUTES_PER[unit] : undefined;
  if (minutes === undefined) throw refusal('the unit must be minutes, hours or days');
  const most = Math.floor((MAX_DURATION_HOURS * 60) / minutes);
  if (amount < 1 || amount > most) throw refusal(`${what} must be from 1 to ${most} ${unit}`);
  return amount * minutes;
}

function tokenOf(given: Given): TokenCreate {
  const { projectId, name, maxRequests } = given;
  return {
    project_id: projectId,
    duration_minutes: minutesIn(given),
    ...(name !== '' && { name }),
    ...(maxRequests !== '' && { max_requests: numberIn(maxRequests, 'the most requests') }),
  };
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
  get('/tokens/new', (visit) => newToken(visit, { ...BEFORE, projectId: visit.query.get('project_id') ?? '' }, null)),
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
