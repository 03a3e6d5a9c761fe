import { bytes, exact } from '../../api/formats.js';
import type { ReactNode } from 'react';
import type { WireCache, WireProject } from '../../api/contract.js';
import { Heading } from './document.js';
import { choicesOf, InputField, SelectField } from './fields.js';
import { QueryForm } from './frame.js';
import { percent } from './formats.js';
import { SuccessNotice, EmptyState, Facts, CommandLine, ErrorNotice } from './parts.js';

export interface CacheProps {
  cache: WireCache;
  projects: readonly WireProject[];
  /** The submitted values of the purge form, shown again with an error. */
  form: { what: string; method: string; url: string; project_id: string };
  done: string | null;
  refused: string | null;
}

export function cachePage({ cache, projects, form, done, refused }: CacheProps) {
  return (
    <>
      <Heading title="Cache" />
      <SuccessNotice what={done} />
      <ErrorNotice why={refused} />
      {cache.backend === 'off' ? (
        <EmptyState title="The cache is off">
          <p>
            To cache responses, set <code>HTTP_CACHE_ENABLED=true</code> and restart the daemon.
          </p>
        </EmptyState>
      ) : (
        <>
          <CacheFacts cache={cache} />
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
  return (
    <section aria-labelledby="purge-title">
      <h2 id="purge-title">Purge</h2>
      <p className="hint">Removes responses before they expire. You see how many before you confirm.</p>
      <div className="columns">
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
        <PurgePanel what="all" title="Everything">
          <p className="hint">All responses of all projects.</p>
        </PurgePanel>
      </div>
      <CommandLine line="llmp cache purge --all --dry-run" />
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
