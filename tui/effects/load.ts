/** Loads data: one function per kind of data request, on the management API. */
import type { ManagementClient, Page } from '../../daemon/api/client.js';
import { USED_SINCE, usedModels } from '../../console/columns/policy-fields.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { loadProjectChanges } from '../../daemon/api/audit-history.js';
import { loadTokenHistory } from '../../daemon/api/audit-history.js';
import { tokensOfSecret, tokensShownAs } from '../../daemon/api/tokens-of-secret.js';
import { filesIn } from './files.js';
import type { DataResponse, DataOf, ContextSummary, DataRequest } from '../state/exchange.js';
import { MAX_PAGE_SIZE } from '../../daemon/api/vocabulary.js';

const LARGEST_PAGE = String(MAX_PAGE_SIZE);
/** Limit of tokens marked at once, to bound the memory. */
const MAX_MARKED = 100_000;
/** Per kind of change of a token; of a project, of all kinds together. */
const CHANGES_SHOWN = 50;
/** Of a batch: more than a screen has rows. */
const MEMBERS_SHOWN = '100';

export interface DataSource {
  client: ManagementClient;
  contexts: () => Promise<readonly ContextSummary[]>;
  /** Aborted when the data is no longer needed. */
  signal: AbortSignal;
  progress: (words: string, done: number, of: number) => void;
}

type Loaders = {
  [K in DataRequest['of']]: (source: DataSource, request: Extract<DataRequest, { of: K }>) => Promise<DataOf<K>>;
};

const LOADERS: Loaders = {
  self: ({ client, signal }) => client.self(signal),
  status: ({ client, signal }) => client.status(signal),
  incidents: ({ client, signal }) => client.incidents(signal),
  lastHour: ({ client, signal }, { query }) => client.top(query, signal),
  tokens: ({ client, signal }, { query }) => client.tokens(query, signal),
  expiring: ({ client, signal }, { query }) => client.tokens(query, signal),
  costs: ({ client, signal }, { query }) => client.usage(query, signal),
  spenders: ({ client, signal }, { query }) => client.tokens(query, signal),
  token: ({ client, signal }, { id }) => client.token(id, signal),
  tokensOfSecret: ({ client, signal }, { by }) =>
    'shown' in by ? tokensShownAs(client, by.shown, signal) : tokensOfSecret(client, by.secret.reveal(), signal),
  allTokens: allTokens,
  projects: ({ client, signal }) => allOf((query) => client.projects(query, signal)),
  models: async ({ client, signal }, { project }) =>
    usedModels(await client.usage({ by: 'model', project_id: project, since: USED_SINCE }, signal)),
  usage: ({ client, signal }, { query }) => client.usage(query, signal),
  audit: ({ client, signal }, { query }) => client.auditRecords(query, signal),
  members: ({ client, signal }, { batch }) => client.auditRecords({ batch, limit: MEMBERS_SHOWN }, signal),
  events: ({ client, signal }, { query }) => client.storedEvents(query, signal),
  tokenAudit: ({ client, signal }, { id }) => loadTokenHistory(client, id, CHANGES_SHOWN, signal),
  projectAudit: ({ client, signal }, { id }) => loadProjectChanges(client, id, CHANGES_SHOWN, signal),
  top: ({ client, signal }, { query }) => client.top(query, signal),
  projectCheck: ({ client, signal }, { project }) => client.checkProject(project.id, signal),
  cache: ({ client, signal }) => client.cache(signal),
  operators: ({ client, signal }) => allOf((query) => client.operators(query, signal)),
  trusts: ({ client, signal }) => allOf((query) => client.trusts(query, signal)),
  purgeable: async ({ client, signal }, { body }) =>
    (await client.purgeCache({ ...body, dry_run: true }, signal)).purged_count,
  viewCount: async ({ client, signal }, { query }) => (await client.tokens(query, signal)).total,
  contexts: ({ contexts }) => contexts(),
  files: (_, { folder }) => filesIn(folder),
};

/** @throws {ApiError | Unreachable} from the client. */
export async function load(source: DataSource, request: DataRequest): Promise<DataResponse> {
  const data = await LOADERS[request.of](source, request as never);
  return { request, data } as DataResponse;
}

async function allOf<T>(read: (query: { limit: string; cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Page<T> = await read({ limit: LARGEST_PAGE, ...(cursor !== null && { cursor }) });
    all.push(...page.items);
    cursor = page.next;
    if (cursor === null) return all;
  }
}

async function allTokens(
  { client, signal, progress }: DataSource,
  { query }: Extract<DataRequest, { of: 'allTokens' }>,
): Promise<WireToken[]> {
  const all: WireToken[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Page<WireToken> = await client.tokens(
      { ...query, limit: LARGEST_PAGE, ...(cursor !== null && { cursor }) },
      signal,
    );
    all.push(...page.items);
    cursor = page.next;
    if (cursor === null || all.length >= MAX_MARKED) return all.slice(0, MAX_MARKED);
    progress('Marking', all.length, page.total ?? all.length);
  }
}
