import type { ReactNode } from 'react';
import { bytes, counted, exact } from '../../api/formats.js';
import type { CachePurge, WireCache, WireProject } from '../../api/contract.js';
import type { ManagementClient } from '../../api/client.js';
import {
  allProjects,
  attempt,
  changed,
  countMessage,
  formValues,
  get,
  invalidRequest,
  type PageRequest,
  type PageResponse,
  post,
  statusOf,
} from '../page-request.js';
import { Heading } from '../parts/document.js';
import { choicesOf, InputField, SelectField } from '../parts/fields.js';
import { QueryForm, useMay } from '../parts/frame.js';
import { escapeBidi, percent } from '../parts/formats.js';
import { CommandLine, EmptyState, ErrorNotice, Facts, SuccessNotice } from '../parts/common.js';
import { confirmPage } from './confirm.js';

/** The submitted values of the purge form, shown again with an error. */
type PurgeForm = typeof EMPTY_FORM;

const EMPTY_FORM = { what: '', method: 'GET', url: '', project_id: '' };

interface CacheProps {
  /** Null if the user may not read its figures. */
  cache: WireCache | null;
  projects: readonly WireProject[];
  form: PurgeForm;
  done: string | null;
  refused: string | null;
}

function CachePage({ cache, projects, form, done, refused }: CacheProps) {
  return (
    <>
      <Heading title="Cache" />
      <SuccessNotice what={done} />
      <ErrorNotice why={refused} />
      {cache?.backend === 'off' ? (
        <EmptyState title="The cache is off">
          <p>
            To cache responses, set <code>HTTP_CACHE_ENABLED=true</code> and restart the daemon.
          </p>
        </EmptyState>
      ) : (
        <>
          {cache === null ? null : <CacheFacts cache={cache} />}
          <Purge projects={projects} form={form} />
        </>
      )}
    </>
  );
}

const BACKENDS: Readonly<Record<string, string>> = { redis: 'Redis' };

function CacheFacts({ cache }: { cache: WireCache }) {
  const asked = cache.hits + cache.misses;
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'Stored in', value: BACKENDS[cache.backend] ?? cache.backend },
        { name: 'Responses', value: exact(cache.entries) },
        { name: 'Size', value: bytes(cache.bytes) },
        { name: 'Hits', value: exact(cache.hits) },
        { name: 'Misses', value: exact(cache.misses) },
        { name: 'Hit rate', value: percent(asked === 0 ? null : cache.hits / asked) },
      ]}
    />
  );
}

const METHODS = [
  ['GET', 'GET'],
  ['POST', 'POST'],
] as const;

/** Each form leads to a confirmation page with the number of responses to remove. */
function Purge({ projects, form }: Pick<CacheProps, 'projects' | 'form'>) {
  const isOfAll = useMay()('purge the whole cache');
  return (
    <section aria-labelledby="purge-title">
      <h2 id="purge-title">Purge</h2>
      <p className="hint">Removes responses before they expire. You see how many before you confirm.</p>
      <div className="columns">
        {isOfAll ? (
          <PurgePanel what="resource" title="One response">
            <SelectField name="method" label="Method" choices={METHODS} chosen={form.method} />
            <InputField
              name="url"
              label="Path"
              hint="A path such as /v1/models with its query. Removes all variants, in all projects."
              required
              maxLength={8192}
              placeholder="/v1/models"
              defaultValue={form.url}
              spellCheck={false}
            />
          </PurgePanel>
        ) : null}
        {projects.length === 0 ? null : (
          <PurgePanel what="project" title="Responses of a project">
            <SelectField
              name="project_id"
              label="Project"
              choices={choicesOf(projects)}
              chosen={form.project_id}
              required
            />
          </PurgePanel>
        )}
        {isOfAll ? (
          <PurgePanel what="all" title="Everything">
            <p className="hint">All responses of all projects.</p>
          </PurgePanel>
        ) : null}
      </div>
      {isOfAll ? <CommandLine line="llmp cache purge --all --dry-run" /> : null}
    </section>
  );
}

function PurgePanel({ what, title, children }: { what: string; title: string; children: ReactNode }) {
  return (
    <QueryForm to="cache/purge" className="panel">
      <h3>{title}</h3>
      <input type="hidden" name="what" value={what} />
      {children}
      <button type="submit">Count…</button>
    </QueryForm>
  );
}

// ---- routes

/** @throws {ApiError} if `what` is none of the three. */
function selectionOf({ what, method, url, project_id }: PurgeForm): CachePurge {
  if (what === 'resource') return { method: method as 'GET' | 'POST', url };
  if (what === 'project') return { project_id };
  if (what === 'all') return { all: true };
  throw invalidRequest('choose what to purge');
}

/** @returns the number of responses. */
async function purge(client: ManagementClient, given: PurgeForm, isDryRun = false): Promise<number> {
  return (await client.purgeCache({ ...selectionOf(given), ...(isDryRun && { dry_run: true }) })).purged_count;
}

async function show(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  const { client, may } = request;
  const [cache, projects] = await Promise.all([may('read the cache') ? client.cache() : null, allProjects(client)]);
  const done = countMessage(request, 'purged', 'response');
  const body = <CachePage cache={cache} projects={projects} form={given} done={done} refused={refused} />;
  return { title: 'Cache', section: 'cache', isLive: true, body, ...statusOf(refused) };
}

async function describeSelection(
  { what, method, url, project_id: id }: PurgeForm,
  request: PageRequest,
): Promise<string> {
  if (what === 'resource') return `All variants of ${method} ${escapeBidi(url)}, in every project.`;
  if (what === 'all') return 'All responses of all projects.';
  const { name } = await request.client.project(id);
  return `All responses of ${escapeBidi(name)}.`;
}

/** Counts the responses to remove and shows the confirmation page. */
async function ask(request: PageRequest, given: PurgeForm, refused: string | null): Promise<PageResponse> {
  const counting = await attempt(() => purge(request.client, given, true), 0);
  if (counting.refused !== null) return show(request, given, counting.refused);
  return confirmPage(request, {
    title: `Purge ${counted(counting.value, 'response')}?`,
    section: 'cache',
    message: `${await describeSelection(given, request)} The next request for any of them is sent to the upstream again.`,
    to: 'cache/purge',
    back: 'cache',
    verb: 'Purge',
    isDangerous: true,
    fields: Object.entries(given),
    refused,
  });
}

export const cacheRoutes = [
  get('/cache', 'purge the cache', (request) => show(request, EMPTY_FORM, null)),
  get('/cache/purge', 'purge the cache', (request) => ask(request, formValues(request.query, EMPTY_FORM), null)),
  post('/cache/purge', 'purge the cache', (request) => {
    const given = formValues(request.form, EMPTY_FORM);
    return changed(
      async () => `cache?purged=${await purge(request.changeClient, given)}`,
      (refused) => ask(request, given, refused),
    );
  }),
];
