import type { ReactNode } from 'react';
import type { WireCache, WireProject } from '../../api/contract.js';
import { Heading } from './document.js';
import { Field, Select } from './fields.js';
import { QueryForm } from './frame.js';
import { choicesOf } from './links.js';
import { Done, Empty, Facts, OnCommandLine, Refused } from './parts.js';
import { number, size } from './words.js';

export interface CacheProps {
  cache: WireCache;
  projects: readonly WireProject[];
  /** What was asked for, where it was refused. */
  given: { what: string; method: string; url: string; projectId: string };
  done: string | null;
  refused: string | null;
}

export function cachePage({ cache, projects, given, done, refused }: CacheProps) {
  return (
    <>
      <Heading title="Cache" />
      <Done what={done} />
      <Refused why={refused} />
      {cache.backend === 'off' ? (
        <Empty title="The cache is off">
          <p>
            Set <code>HTTP_CACHE_ENABLED=true</code> and restart the daemon, and answers that may be kept are kept.
          </p>
        </Empty>
      ) : (
        <>
          <CacheFacts cache={cache} />
          <Purge projects={projects} given={given} />
        </>
      )}
    </>
  );
}

function CacheFacts({ cache }: { cache: WireCache }) {
  const asked = cache.hits + cache.misses;
  return (
    <Facts
      id="facts"
      facts={[
        { name: 'Kept in', value: cache.backend === 'redis' ? 'Redis' : 'memory' },
        { name: 'Answers', value: number(cache.entries) },
        { name: 'Size', value: size(cache.bytes) },
        { name: 'Hits', value: number(cache.hits) },
        { name: 'Misses', value: number(cache.misses) },
        { name: 'Hit rate', value: asked === 0 ? '–' : `${Math.round((cache.hits / asked) * 100)} %` },
      ]}
    />
  );
}

const METHODS = [
  ['GET', 'GET'],
  ['POST', 'POST'],
] as const;

/** Each form leads to a page that says how many answers would go. */
function Purge({ projects, given }: Pick<CacheProps, 'projects' | 'given'>) {
  return (
    <section aria-labelledby="purge-title">
      <h2 id="purge-title">Purge</h2>
      <p className="hint">Removes answers before their time. You are told how many before any goes.</p>
      <div className="columns">
        <Part what="resource" title="One answer">
          <Field name="method" label="Method">
            {(attributes) => <Select choices={METHODS} chosen={given.method} {...attributes} />}
          </Field>
          <Field name="url" label="Path" hint="Below /v1, with its query; every variant, in every project.">
            {(attributes) => (
              <input
                type="text"
                required
                maxLength={8192}
                placeholder="/v1/models"
                defaultValue={given.url}
                spellCheck={false}
                {...attributes}
              />
            )}
          </Field>
        </Part>
        {projects.length === 0 ? null : (
          <Part what="project" title="A project’s answers">
            <Field name="project_id" label="Project">
              {(attributes) => (
                <Select choices={choicesOf(projects)} chosen={given.projectId} required {...attributes} />
              )}
            </Field>
          </Part>
        )}
        <Part what="all" title="Everything">
          <p className="hint">All answers of all projects.</p>
        </Part>
      </div>
      <OnCommandLine line="llmp cache purge --all --dry-run" />
    </section>
  );
}

function Part({ what, title, children }: { what: string; title: string; children: ReactNode }) {
  return (
    <QueryForm to="cache/purge" className="panel">
      <h3>{title}</h3>
      <input type="hidden" name="what" value={what} />
      {children}
      <button type="submit">Count…</button>
    </QueryForm>
  );
}
