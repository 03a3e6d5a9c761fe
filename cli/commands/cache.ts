/** `llmp cache …`: the answers that the daemon keeps. */
import type { Kind } from '../../config/kinds.js';
import type { CachePurge } from '../../daemon/api/contract.js';
import { confirmed, dryRun } from '../batch.js';
import { command, type Invocation } from '../command.js';
import { flag, text, value } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { cachePurgedView, cacheView } from '../../console/views.js';

const method: Kind<'GET' | 'POST'> = {
  accepts: 'GET or POST, the methods whose answers are kept',
  parse(given) {
    const upper = given.toUpperCase();
    return upper === 'GET' || upper === 'POST' ? upper : undefined;
  },
  values: ['GET', 'POST'],
};

const purgeOptions = {
  method: value('--method <METHOD>', method, 'with --url: GET or POST'),
  url: text('--url <PATH>', 'the cached responses to this path and query, in every project; for example /v1/models'),
  projectId: text('--project-id <ID>', 'all cached responses of this project, by name or ID', 'project'),
  all: flag('--all', 'all cached responses'),
  dryRun,
};

/** What is to be purged, before the daemon was asked for the whole id of a project. */
type Selection = { method: 'GET' | 'POST'; url: string } | { project: string } | { all: true };

const purge = command({
  path: ['manage', 'cache', 'purge'],
  summary: 'remove cached responses',
  examples: [
    ['cache purge --method GET --url /v1/models', 'the responses to that path without a query'],
    ["cache purge --method GET --url '/v1/models?limit=1' -n", 'count the responses to this path and query'],
    ['cache purge --project-id web --yes', 'all cached responses of a project'],
    ['cache purge --all --yes', 'all cached responses'],
  ],
  options: purgeOptions,
  async run(invocation) {
    const { output, options } = invocation;
    const selection = selectionOf(invocation);
    if (!options.dryRun) await confirmedPurge(selection, invocation);
    const client = await invocation.connect();
    const selected: CachePurge =
      'project' in selection ? { project_id: await wholeIdOf(client, 'project', selection.project) } : selection;

    const answer = await client.purgeCache({ ...selected, ...(options.dryRun && { dry_run: true }) });
    if (output.format !== 'table') await output.one({ purged: shown(selected), ...answer }, cachePurgedView);
    output.note(`${answer.message}.${options.dryRun ? ' Nothing was changed.' : ''}`);
    return EXIT.done;
  },
});

/** @throws {Failure} unless exactly one thing is selected. */
function selectionOf({ options }: Invocation<typeof purgeOptions>): Selection {
  const { method, url, projectId, all } = options;
  const given = [method ?? url, projectId, all].filter((it) => it !== undefined).length;
  if (given > 1) throw usage('--method with --url, --project-id and --all exclude each other', { advice: 'Give one' });
  if (projectId !== undefined) return { project: checkedId('project', projectId) };
  if (all) return { all };
  if (given === 0) throw usage('nothing to purge', { advice: 'Give --method and --url, --project-id, or --all' });
  if (url === undefined) throw usage('no path given', { advice: 'Add --url PATH, such as --url /v1/models' });
  if (method === undefined) throw usage('no method given', { advice: 'Add --method GET or --method POST' });
  // Not repeated: a query, or what stands in front of the host, may be a credential.
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(url)) {
    throw usage('--url takes a path, not a full URL', {
      advice: 'Begin with /v1; --server takes the address of the daemon',
    });
  }
  return { method, url };
}

async function confirmedPurge(selection: Selection, invocation: Invocation<typeof purgeOptions>): Promise<void> {
  if ('project' in selection) await confirmed(`Purge every answer of project ${selection.project}?`, invocation);
  else if ('all' in selection) await confirmed('Purge every answer of every project?', invocation);
}

function shown({ method, url, project_id }: CachePurge): string {
  return project_id ?? (method && url ? `${method} ${url}` : 'all');
}

const stats = command({
  path: ['manage', 'cache', 'stats'],
  summary: 'show the size and the hit ratio of the response cache',
  examples: [['cache stats', 'hits and misses are those since the daemon started']],
  options: {},
  async run({ output, connect }) {
    const client = await connect();
    const cache = await client.cache();
    await output.one(cache, cacheView);
    if (cache.backend === 'off') output.note('The cache is off. Turn it on with HTTP_CACHE_ENABLED=true');
    return EXIT.done;
  },
});

export const cacheCommands = [purge, stats];
