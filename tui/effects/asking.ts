/** Questions, and how the management API answers each. */
import type { ManagementClient, Page } from '../../daemon/api/client.js';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { historyOf } from '../../daemon/api/token-history.js';
import type { Answered, AnswerOf, ContextShown, Question } from '../state/exchange.js';
import { MAX_PAGE_SIZE } from '../../daemon/api/vocabulary.js';

const LARGEST_PAGE = String(MAX_PAGE_SIZE);
/** More would be no selection any more, and cost more memory than a terminal UI should. */
export const MOST_MARKED = 100_000;
/** Of each kind of change of a token. */
const CHANGES_SHOWN = 50;

export interface Asking {
  client: ManagementClient;
  contexts: () => Promise<readonly ContextShown[]>;
  /** No answer is wanted any more. */
  enough: AbortSignal;
  progress: (words: string, done: number, of: number) => void;
}

type Asker = {
  [K in Question['of']]: (asking: Asking, question: Extract<Question, { of: K }>) => Promise<AnswerOf<K>>;
};

const ASKERS: Asker = {
  status: ({ client, enough }) => client.status(enough),
  tokens: ({ client, enough }, { query }) => client.tokens(query, enough),
  dying: ({ client, enough }, { query }) => client.tokens(query, enough),
  token: ({ client, enough }, { id }) => client.token(id, enough),
  everyToken: everyToken,
  projects: everyProject,
  usage: ({ client, enough }, { query }) => client.usage(query, enough),
  audit: ({ client, enough }, { query }) => client.auditRecords(query, enough),
  tokenAudit: ({ client, enough }, { id }) => historyOf(client, id, CHANGES_SHOWN, enough),
  cache: ({ client, enough }) => client.cache(enough),
  purgeable: async ({ client, enough }, { body }) =>
    (await client.purgeCache({ ...body, dry_run: true }, enough)).purged_count,
  contexts: ({ contexts }) => contexts(),
};

/** @throws {ApiError | Unreachable} as the client does. */
export async function ask(asking: Asking, question: Question): Promise<Answered> {
  const answer = await ASKERS[question.of](asking, question as never);
  return { question, answer } as Answered;
}

async function everyProject({ client, enough }: Asking): Promise<WireProject[]> {
  const all: WireProject[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Page<WireProject> = await client.projects(
      { limit: LARGEST_PAGE, ...(cursor !== null && { cursor }) },
      enough,
    );
    all.push(...page.items);
    cursor = page.next;
    if (cursor === null) return all;
  }
}

async function everyToken(
  { client, enough, progress }: Asking,
  { query }: Extract<Question, { of: 'everyToken' }>,
): Promise<WireToken[]> {
  const all: WireToken[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Page<WireToken> = await client.tokens(
      { ...query, limit: LARGEST_PAGE, ...(cursor !== null && { cursor }) },
      enough,
    );
    all.push(...page.items);
    cursor = page.next;
    if (cursor === null || all.length >= MOST_MARKED) return all.slice(0, MOST_MARKED);
    progress('Marking', all.length, page.total ?? all.length);
  }
}
