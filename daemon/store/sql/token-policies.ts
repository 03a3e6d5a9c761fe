/**
 * Filters of the list of tokens by what they may ask for. Patterns are compared here and not in SQL, once for each list of models that
 * tokens have with that of their project: most tokens have one of a few.
 */
import { hash } from 'node:crypto';
import type { Selection, TokenFilter } from '../../core/ports.js';
import { haveCommonText, Pattern } from '../../core/policy/pattern.js';
import { Refusal } from '../../core/refusal.js';
import type { Allow } from '../../core/token.js';
import type { Bind, Reader } from './database.js';
import type { Dialect } from './dialect.js';
import type { Conditions } from './lists.js';

/** How many lists are read at once. Each may have 20 KB. */
const BATCH = 200;
/** Of the lists of tokens with those of their projects. Their keys are passed back to the database, and have 3 MB. */
const MAX_COMBINATIONS = 100_000;
const KEY_LENGTH = 16;

/** The same for tokens and projects with the same list of models; '' for those without one. */
export function modelsKeyOf(allow: Allow | null): string {
  if (!allow?.models) return '';
  return hash('sha256', JSON.stringify([...new Set(allow.models)].sort()), 'base64url').slice(0, KEY_LENGTH);
}

/** The tokens that may use a model, or those that may not. */
export interface Usable {
  /** The keys of their list and that of their project, as `COMBINATION` joins them. */
  combinations: readonly string[];
  /** The keys of their lists. */
  keys: readonly string[];
  /** How many tokens have them. */
  tokens: number;
}

interface Combination {
  own: string;
  of_project: string;
  tokens: number;
}

/**
 * @param among only these tokens are looked at.
 * @throws {Refusal} (rejects with) `invalid_request` if they have too many different lists.
 */
export async function usableBy(on: Reader, allows: Selection<string>, among: Conditions): Promise<Usable> {
  const wanted = allows.among.map((text) => new Pattern(text.replace(/^models\//, '')));
  const combinations = await combinationsOf(on, among);
  const keys = new Set<string>();
  const usable: string[] = [];
  let tokens = 0;
  for (let at = 0; at < combinations.length; at += BATCH) {
    const batch = combinations.slice(at, at + BATCH);
    const lists = await listsOf(on, 'tokens', new Set(batch.map(({ own }) => own)));
    const ofProjects = await listsOf(on, 'projects', new Set(batch.map(({ of_project: key }) => key)));
    for (const { own, of_project: ofProject, tokens: count } of batch) {
      const both = [lists.get(own), ofProjects.get(ofProject)].filter((list) => list !== undefined);
      if (wanted.some((pattern) => areCommon([pattern], both)) === allows.isExcluded) continue;
      usable.push(`${own}.${ofProject}`);
      keys.add(own);
      tokens += count;
    }
  }
  return { combinations: usable, keys: [...keys], tokens };
}

/** Whether a text matches all of these patterns, and one of each list. */
function areCommon(patterns: readonly Pattern[], lists: readonly (readonly Pattern[])[]): boolean {
  const [list, ...others] = lists;
  if (!list) return haveCommonText(patterns);
  return list.some((one) => haveCommonText([...patterns, one]) && areCommon([...patterns, one], others));
}

async function combinationsOf(on: Reader, among: Conditions): Promise<Combination[]> {
  const own = `SELECT t.models_key, t.project_id, COUNT(*) AS tokens FROM tokens t ${among.sql} GROUP BY t.models_key, t.project_id`;
  const found = await on.select<Combination>(
    `SELECT t.models_key AS own, p.models_key AS of_project, SUM(t.tokens) AS tokens
     FROM (${own}) t JOIN projects p ON p.id = t.project_id
     GROUP BY t.models_key, p.models_key ORDER BY t.models_key, p.models_key LIMIT ${MAX_COMBINATIONS + 1}`,
    among.bind,
  );
  if (found.length <= MAX_COMBINATIONS) return found;
  const words = `allows: these tokens have more than ${MAX_COMBINATIONS} different lists of models; name some projects in project_id`;
  throw new Refusal('invalid_request', words);
}

/** The lists with these keys. */
async function listsOf(on: Reader, table: 'tokens' | 'projects', all: ReadonlySet<string>) {
  const keys = [...all].filter((key) => key !== '');
  if (keys.length === 0) return new Map<string, Pattern[] | undefined>();
  const rows = await on.select<{ models_key: string; allow: string | null }>(
    `SELECT wanted.value AS models_key, (SELECT one.allow FROM ${table} one WHERE one.models_key = wanted.value LIMIT 1) AS allow
     FROM (${on.dialect.textsIn('$keys')}) wanted`,
    { keys: JSON.stringify(keys) },
  );
  return new Map(
    rows.map(({ models_key: key, allow }) => {
      const { models } = JSON.parse(allow ?? '{}') as Partial<Allow>;
      return [key, models?.map((name) => new Pattern(name))];
    }),
  );
}

const COMBINATION = `CONCAT(t.models_key, '.', (SELECT p.models_key FROM projects p WHERE p.id = t.project_id))`;

/** Conditions on `tokens t`. */
export function policyConditions(
  { isLimited }: Pick<TokenFilter, 'isLimited'>,
  usable: Usable | null,
  { textsIn }: Dialect,
): [string, Bind][] {
  const conditions: [string, Bind][] = [];
  if (usable) {
    const bind = { usable: JSON.stringify(usable.combinations) };
    conditions.push([`${COMBINATION} IN (SELECT * FROM (${textsIn('$usable')}) usable)`, bind]);
  }
  if (isLimited !== undefined) {
    const condition = `t.limits IS NOT NULL OR t.project_id IN (SELECT id FROM projects WHERE limits IS NOT NULL)`;
    conditions.push([isLimited ? condition : `NOT (${condition})`, {}]);
  }
  return conditions;
}

/** Query for the IDs of these tokens, found by the keys of their lists. */
export function idsOfUsable(usable: Usable, dialect: Dialect): { sql: string; bind: Bind } {
  const byKey = dialect.rowsIn(`tokens t ${dialect.indexHint('tokens_models')}`, 't.models_key', '$keys');
  const [[condition, bind] = ['1 = 0', {}]] = policyConditions({}, usable, dialect);
  return { sql: `SELECT t.id FROM ${byKey} WHERE ${condition}`, bind: { ...bind, keys: JSON.stringify(usable.keys) } };
}
