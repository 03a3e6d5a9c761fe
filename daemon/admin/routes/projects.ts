import type { ProjectPatch, WireProject } from '../../api/contract.js';
import { countDone, doneOf } from '../done.js';
import { confirmPage, type ConfirmProps } from '../pages/confirm.js';
import { projectPage } from '../pages/project.js';
import { newProjectPage, projectsPage } from '../pages/projects.js';
import { counted, plain } from '../pages/words.js';
import { type Answer, get, givenOf, listed, post, refusedBecause, statusOf, type Visit } from '../visit.js';
import { usageFor } from './overview.js';

const RECORDS_SHOWN = '8';

const DONE: Readonly<Record<string, string>> = {
  created: 'Created. Now issue a token for it.',
  renamed: 'Renamed.',
  key: 'The key is replaced. Requests that begin from now on go with the new one.',
  activated: 'Activated. Its tokens pass again.',
  deactivated: 'Deactivated. Its tokens are refused from now on.',
};

const idOf = ({ params }: Visit) => params.id ?? '';

async function show(visit: Visit, refused: string | null = null): Promise<Answer> {
  const client = visit.client();
  const project = await client.project(idOf(visit));
  const [used, records, active] = await Promise.all([
    usageFor(visit, client, { project_id: project.id }),
    client.auditRecords({ project_id: project.id, limit: RECORDS_SHOWN }),
    client.tokens({ project_id: project.id, active_only: 'true', limit: '1' }),
  ]);
  const done = refused === null ? (countDone(visit, 'revoked', 'token') ?? doneOf(visit, DONE)) : null;
  const body = projectPage({
    project,
    activeTokens: active.total,
    ...used,
    records: records.items,
    done,
    refused,
  });
  return { title: plain(project.name), section: 'projects', isLive: true, body, ...statusOf(refused) };
}

/** A form on the project's own page. */
async function change(visit: Visit, patch: ProjectPatch, done: string): Promise<Answer> {
  const id = idOf(visit);
  const refused = await refusedBecause(() => visit.changing().updateProject(id, patch));
  return refused === null ? { to: `projects/${id}?done=${done}` } : show(visit, refused);
}

// ---- what is asked for first

type Asking = Pick<ConfirmProps, 'says' | 'verb' | 'isDangerous'> & { title: string };

const toActivate = ({ name }: WireProject): Asking => ({
  title: `Activate ${plain(name)}?`,
  says: 'Its tokens pass again from the next request on.',
  verb: 'Activate',
  isDangerous: false,
});

const toDeactivate = ({ name }: WireProject): Asking => ({
  title: `Deactivate ${plain(name)}?`,
  says: 'All its tokens are refused from the next request on, and requests in flight are ended. It can be activated again.',
  verb: 'Deactivate',
  isDangerous: true,
});

async function toRevokeAll({ id, name }: WireProject, visit: Visit): Promise<Asking> {
  const { total } = await visit.client().tokens({ project_id: id, active_only: 'true', limit: '1' });
  return {
    title: `Revoke all tokens of ${plain(name)}?`,
    says: `${counted(total ?? 0, 'token')} can be used now. Their clients get 401 from the next request on, and requests in flight are ended. Each can be reactivated, one by one.`,
    verb: 'Revoke all',
    isDangerous: true,
  };
}

/** A change of a project that is asked for on a page of its own: the page, and the change. */
function askedChange(
  what: string,
  asking: (project: WireProject, visit: Visit) => Asking | Promise<Asking>,
  run: (visit: Visit, id: string) => Promise<string>,
) {
  const ask = async (visit: Visit, refused: string | null = null): Promise<Answer> => {
    const project = await visit.client().project(idOf(visit));
    const { title, ...asked } = await asking(project, visit);
    const back = `projects/${project.id}`;
    const reason = visit.form.get('reason') ?? '';
    const body = confirmPage({ title, ...asked, to: `${back}/${what}`, back, refused, reason });
    return { title, section: 'projects', body, ...statusOf(refused) };
  };
  const path = `/projects/:id/${what}`;
  return [
    get(path, (visit) => ask(visit)),
    post(path, async (visit) => {
      let done = '';
      const refused = await refusedBecause(async () => {
        done = await run(visit, idOf(visit));
      });
      return refused === null ? { to: `projects/${idOf(visit)}?${done}` } : ask(visit, refused);
    }),
  ];
}

const setActive = (isActive: boolean, done: string) => async (visit: Visit, id: string) => {
  await visit.changing().updateProject(id, { is_active: isActive });
  return `done=${done}`;
};

const newProject = (name: string, refused: string | null): Answer => ({
  title: 'New project',
  section: 'projects',
  body: newProjectPage({ name, refused }),
  ...statusOf(refused),
});

export const projectRoutes = [
  get('/projects', async (visit) => {
    const filter = givenOf(visit.query, ['is_active', 'cursor']);
    const { items, ...page } = await listed(() => visit.client().projects(filter));
    const body = projectsPage({ projects: items, ...page, query: visit.query });
    return { title: 'Projects', section: 'projects', body, ...statusOf(page.refused) };
  }),
  get('/projects/new', () => Promise.resolve(newProject('', null))),
  post('/projects/new', async (visit) => {
    const name = visit.form.get('name') ?? '';
    let id = '';
    const refused = await refusedBecause(async () => {
      ({ id } = await visit.changing().createProject({ name, api_key: visit.form.get('api_key') ?? '' }));
    });
    return refused === null ? { to: `projects/${id}?done=created` } : newProject(name, refused);
  }),
  get('/projects/:id', (visit) => show(visit)),
  post('/projects/:id/rename', (visit) => change(visit, { name: visit.form.get('name') ?? '' }, 'renamed')),
  post('/projects/:id/key', (visit) => change(visit, { api_key: visit.form.get('api_key') ?? '' }, 'key')),
  ...askedChange('activate', toActivate, setActive(true, 'activated')),
  ...askedChange('deactivate', toDeactivate, setActive(false, 'deactivated')),
  ...askedChange('revoke-all', toRevokeAll, async (visit, id) => {
    const { revoked_count: count } = await visit.changing().revokeTokensOf(id);
    return `revoked=${count}`;
  }),
];
