/**
 * Filters of the list of tokens by what they may ask for. Patterns are compared here and not in SQL: of all tokens with a list of models,
 * the IDs of those that match are determined first.
 */
import { boundedMemo } from '../../core/bounded-memo.js';
import type { TokenFilter } from '../../core/ports.js';
import { haveCommonText, Pattern } from '../../core/policy/pattern.js';
import type { Allow } from '../../core/token.js';
import type { Bind, Reader } from './database.js';
import type { Dialect } from './dialect.js';

/** How many lists are read at once. Each may have 40 KB. */
const BATCH = 500;
/** Of lists whose verdict is remembered, in characters: most are shorter. */
const USUAL_LENGTH = 4_000;

/** Tokens and projects that may use a model. */
export interface Usable {
  /** IDs of tokens with a list of their own. */
  tokens: readonly string[];
  /** IDs of projects whose list excludes all of its tokens. */
  closedProjects: readonly string[];
}

/** @returns null for a filter without models that must be allowed. */
export async function usableBy(on: Reader, { allows }: TokenFilter): Promise<Usable | null> {
  if (!allows) return null;
  const wanted = allows.among.map((text) => new Pattern(text.replace(/^models\//, '')));
  const isUsable = (lists: readonly string[]) => {
    const models = lists.flatMap((list) => {
      const { models: names } = JSON.parse(list) as Allow;
      return names ? [names.map((name) => new Pattern(name))] : [];
    });
    return wanted.some((pattern) => areCommon([pattern], models));
  };
  const projectLists = new Map<string, string>();
  for await (const { id, allow } of withLists(on, 'projects')) projectLists.set(id, allow);
  const closedProjects = [...projectLists].filter(([, allow]) => !isUsable([allow])).map(([id]) => id);
  const tokens: string[] = [];
  // Most tokens have one of a few lists.
  const isUsableWith = boundedMemo((both) => isUsable(both.split('\n').filter((list) => list !== '')), USUAL_LENGTH);
  for await (const { id, project_id: project, allow } of withLists(on, 'tokens')) {
    if (isUsableWith(`${allow}\n${projectLists.get(project) ?? ''}`)) tokens.push(id);
  }
  return { tokens, closedProjects };
}

/** Whether a text matches all of these patterns, and one of each list. */
function areCommon(patterns: readonly Pattern[], lists: readonly (readonly Pattern[])[]): boolean {
  const [list, ...others] = lists;
  if (!list) return haveCommonText(patterns);
  return list.some((one) => haveCommonText([...patterns, one]) && areCommon([...patterns, one], others));
}

interface WithList {
  id: string;
  project_id: string;
  allow: string;
}

async function* withLists(on: Reader, table: 'tokens' | 'projects'): AsyncGenerator<WithList> {
  const columns = table === 'tokens' ? 'id, project_id, allow' : "id, '' AS project_id, allow";
  let last = '';
  for (;;) {
    const rows = await on.select<WithList>(
      `SELECT ${columns} FROM ${table} WHERE allow IS NOT NULL AND id > $last ORDER BY id LIMIT ${BATCH}`,
      { last },
    );
    yield* rows;
    if (rows.length < BATCH) return;
    last = rows.at(-1)?.id ?? last;
  }
}

/** Conditions on `tokens t`. */
export function policyConditions(
  { allows, isLimited }: Pick<TokenFilter, 'allows' | 'isLimited'>,
  usable: Usable | null,
  { rowsIn }: Dialect,
): [string, Bind][] {
  const conditions: [string, Bind][] = [];
  if (allows && usable) {
    const among = (table: string, list: string) => `(SELECT one.id FROM ${rowsIn(`${table} one`, 'one.id', list)})`;
    const condition = `CASE WHEN t.allow IS NULL THEN t.project_id NOT IN ${among('projects', '$closedProjects')}
      ELSE t.id IN ${among('tokens', '$usable')} END`;
    const bind = { closedProjects: JSON.stringify(usable.closedProjects), usable: JSON.stringify(usable.tokens) };
    conditions.push([allows.isExcluded ? `NOT (${condition})` : condition, bind]);
  }
  if (isLimited !== undefined) {
    const condition = `t.limits IS NOT NULL OR t.project_id IN (SELECT id FROM projects WHERE limits IS NOT NULL)`;
    conditions.push([isLimited ? condition : `NOT (${condition})`, {}]);
  }
  return conditions;
}
