/** Names of tokens and projects, for lists that show them beside an ID. */
import type { SubjectNames } from '../../core/audit.js';
import type { CommittedRecord, Names } from '../../core/ports.js';
import type { Reader } from './database.js';
import { PROJECTS, RECORD, type RecordColumns, TOKENS } from './tables.js';

/** Two columns with the names for two IDs, which are given as SQL. Each is one lookup by primary key. */
export const namesOf = (tokenId: string, projectId: string): string =>
  `(SELECT n.name FROM tokens n WHERE n.id = ${tokenId}) AS token_name,
   (SELECT n.name FROM projects n WHERE n.id = ${projectId}) AS project_name`;

export interface NameColumns {
  token_name: string | null;
  project_name: string | null;
}

const { read: tokenName } = TOKENS.columns.name;

export const namesIn = ({ token_name, project_name }: NameColumns): SubjectNames => ({
  tokenName: token_name === null ? null : tokenName(token_name),
  projectName: project_name,
});

/** For `audit a`. */
export const NAMED_RECORD = `${RECORD.list}, ${namesOf('a.token_id', 'a.project_id')}`;
export type NamedRecordColumns = RecordColumns & NameColumns;
export const namedRecordOf = (row: NamedRecordColumns): CommittedRecord => ({ ...RECORD.of(row), ...namesIn(row) });

export async function namesById(on: Reader, tokenIds: Iterable<string>, projectIds: Iterable<string>): Promise<Names> {
  const [tokens, projects] = await Promise.all([
    pairs(on, TOKENS.name, new Set(tokenIds)),
    pairs(on, PROJECTS.name, new Set(projectIds)),
  ]);
  return {
    tokens: new Map(tokens.map(({ id, name }) => [id, tokenName(name)])),
    projects: new Map(projects.map(({ id, name }) => [id, name])),
  };
}

function pairs(on: Reader, table: string, ids: ReadonlySet<string>): Promise<{ id: string; name: string }[]> {
  if (ids.size === 0) return Promise.resolve([]);
  const from = on.dialect.rowsIn(`${table} n`, 'n.id', '$ids');
  return on.select(`SELECT n.id, n.name FROM ${from}`, { ids: JSON.stringify([...ids]) });
}
