/** `llmp cache …`: inspects and purges the response cache. */
import type { Kind } from '../../config/kinds.js';
import type { CachePurge } from '../../daemon/api/contract.js';
import { confirmed, dryRun } from '../batch.js';
import { command, type Invocation } from '../command.js';
import { flag, text, value } from '../option.js';
import { EXIT, usage } from '../../console/failure.js';
import { checkedId, wholeIdOf } from '../ids.js';
import { cachePurgedView, cacheView } from '../../console/views.js';

const method: Kind<'GET' | 'POST'> = {
  accepts: 'GET or POST, the methods whose responses are cached',
  parse(given) {
    const upper = given.toUpperCase();
    return upper === 'GET' || upper === 'POST' ? upper : undefined;
  },
  values: ['GET', 'POST'],
};

const purgeOptions = {
  method: value('--method <METHOD>', method, 'the method of --url: GET or POST'),
  url: text('--url <PATH>', 'purge responses to this path and query in all projects, for example /v1/models'),
  projectId: text('--project-id <ID>', 'purge all responses of this project, by name or ID', 'project'),
  all: flag('--all', 'purge all cached responses'),
  dryRun,
};

/** What to purge. The project is as given: its full ID is not known yet. */
type Selection = { method: 'GET' | 'POST'; url: string } | { project: string } | { all: true };

const purge = command({
  path: ['manage', 'cache', 'purge'],
  summary: 'purge cached responses',
  examples: [
    ['cache purge --method GET --url /v1/models', 'purge the responses to this path without a query'],
    ["cache purge --method GET --url '/v1/models?limit=1' -n", 'count the responses to this path and query'],
    ['cache purge --project-id web --yes', 'purge all responses of a project'],
    ['cache purge --all --yes', 'purge all cached responses'],
  ],
  options: purgeOptions,
  prints: () => [...cachePurgedView.fields, 'message'],
  async run(invocation) {
    const { output, options } = invocation;
    const selection = selectionOf(invocation);
    if (!options.dryRun) await confirmedPurge(selection, invocation);
    const client = await invocation.connect();
    const selected: CachePurge =
      'project' in selection ? { project_id: await wholeIdOf(client, 'project', selection.project) } : selection;

    const result = await client.purgeCache({ ...selected, ...(options.dryRun && { dry_run: true }) });
    if (output.format !== 'table') await output.one({ purged: shown(selected), ...result }, cachePurgedView);
    output.note(`${result.message}.${options.dryRun ? ' Nothing was changed.' : ''}`);
    return EXIT.done;
  },
});

/** @throws {Failure} unless exactly one of the selecting options is given. */
function selectionOf({ options }: Invocation<typeof purgeOptions>): Selection {
  const { method, url, projectId, all } = options;
  const given = [method ?? url, projectId, all].filter((it) => it !== undefined).length;
  if (given > 1)
    throw usage('--method with --url, --project-id and --all exclude each other', { advice: 'Use one of them' });
  if (projectId !== undefined) return { project: checkedId('project', projectId) };
  if (all) return { all };
  if (given === 0) throw usage('nothing to purge', { advice: 'Use --method and --url, --project-id, or --all' });
  if (url === undefined) throw usage('no path given', { advice: 'Add --url PATH, for example --url /v1/models' });
  if (method === undefined) throw usage('no method given', { advice: 'Add --method GET or --method POST' });
  // The message does not repeat the URL: its query or user information may contain a credential.
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(url)) {
    throw usage('--url takes a path, not a full URL', {
      advice: 'Give a path such as /v1/models. The address of the daemon goes into --server',
    });
  }
  return { method, url };
}

async function confirmedPurge(selection: Selection, invocation: Invocation<typeof purgeOptions>): Promise<void> {
  if ('project' in selection) await confirmed(`Purge all responses of project ${selection.project}?`, invocation);
  else if ('all' in selection) await confirmed('Purge all responses of all projects?', invocation);
}

function shown({ method, url, project_id }: CachePurge): string {
  return project_id ?? (method && url ? `${method} ${url}` : 'all');
}

const stats = command({
  path: ['manage', 'cache', 'stats'],
  summary: 'show size, hits and misses of the response cache',
  examples: [['cache stats', 'show the hits and misses since the daemon started']],
  options: {},
  async run({ output, connect }) {
    const client = await connect();
    const cache = await client.cache();
    await output.one(cache, cacheView);
    if (cache.backend === 'off') output.note('The cache is off. Enable it with HTTP_CACHE_ENABLED=true');
    return EXIT.done;
  },
});

export const cacheCommands = [purge, stats];
