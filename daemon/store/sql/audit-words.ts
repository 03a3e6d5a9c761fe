/**
 * Full-text search in audit records, and filters on their fields.
 *
 * On SQLite, the full-text index lists the records that contain a word, in order of time, so that a page for any filter can be read
 * from the index: llmp neither scans a million records nor sorts what it finds. The fields of a record (action, actor, outcome,
 * project, token) are indexed as tags, words with a prefix that no other word has: a search does not find them, and a text cannot
 * imitate them. Only SQLite uses tags. The row ID in the index is the time of the record, followed by the last 20 bits of its
 * sequence number.
 *
 * On other databases, a table maps the words of the texts to the sequence numbers of records.
 */
import type { AuditFilter, CommittedRecord } from '../../core/ports.js';
import { number, text } from './columns.js';
import type { Bind, SqlTransaction } from './database.js';
import { insertRows } from './json-rows.js';

const ROWIDS_PER_MS = 2 ** 20;

/** Row ID of a record in the index, as SQL. The time in ms needs more than 32 bits; the SQLite driver passes such a number as REAL. */
const ROWID_OF_RECORD = `recorded_at * ${ROWIDS_PER_MS} + seq % ${ROWIDS_PER_MS}`;
const firstRowidAt = (time: string) => `CAST(${time} AS INTEGER) * ${ROWIDS_PER_MS}`;

/** Adds the words of records that the table `audit` has already. */
export async function insertWords(tx: SqlTransaction, records: readonly CommittedRecord[]): Promise<void> {
  if (tx.dialect.name !== 'sqlite') return insertRows(tx, 'audit_words', [word, seq], records.flatMap(wordRowsOf));
  const rows = records.map((record) => {
    const words = new Set(wordsIn(textOf(record)));
    return [record.seq, [...tagsOf(record), ...words].join(' ')];
  });
  await tx.execute(
    `INSERT INTO audit_words (rowid, words) SELECT ${ROWID_OF_RECORD}, w.value ->> 1
     FROM json_each($rows) w CROSS JOIN audit ON seq = w.value ->> 0`,
    { rows: JSON.stringify(rows) },
  );
}

const word = text('word');
const seq = number('seq');

const wordRowsOf = (record: CommittedRecord) =>
  Array.from(new Set(wordsIn(textOf(record)).map(beginningOf)), (word) => ({ word, seq: record.seq }));

// Length of the column.
const MAX_WORD_LENGTH = 64;

/** What is stored of a word. Not half of a character, which no database stores. */
const beginningOf = (word: string): string => word.slice(0, MAX_WORD_LENGTH).replace(/[\ud800-\udbff]$/, '');

/** Without a full-text index: conditions that each word of the text is the beginning of a word in record `a`. */
export function wordConditions(text: string): [string, Bind][] {
  return searchedIn(text).map((word, i) => {
    const first = beginningOf(word);
    return [
      `a.seq IN (SELECT w.seq FROM audit_words w WHERE w.word >= $first_${i} AND w.word < $last_${i})`,
      // Sorts after every word with this prefix.
      { [`first_${i}`]: first, [`last_${i}`]: `${first}\u{10ffff}` },
    ];
  });
}

/**
 * Splits a text into words: letters and digits, in lower case. Indexing and searching use the same function. SQLite only splits at
 * spaces, because what it treats as a letter depends on its version.
 *
 * A UUID is one word: with its five groups, the IDs of a record would be most of its words, and take most of the time to index it.
 */
export const wordsIn = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, (uuid) => uuid.replaceAll('-', ''))
    .match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

/** The words to search for. What may be the beginning of a UUID, or not, is its first eight characters, with which both begin. */
const searchedIn = (text: string): string[] =>
  wordsIn(text.replace(/\b([0-9a-f]{8})(?:-[0-9a-f]{4}){0,3}-[0-9a-f]{0,11}(?![\w-])/gi, '$1'));

/** The names are those at the time of the record. Records of releases that did not index names are found by the other texts. */
function textOf(record: CommittedRecord): string {
  const { projectId, tokenId, projectName, tokenName, obfuscated, requestId, clientIp, user, reason, details } = record;
  const { action, actor, outcome, batch, undoOf } = record;
  const ids = [projectId, projectName, tokenId, tokenName, obfuscated, requestId, batch, undoOf];
  return [action, actor, outcome, ...ids, clientIp, user, reason, ...textsIn(details)].join(' ');
}

/** Names and values, as lists show them. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return value == null ? [] : [JSON.stringify(value)];
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return [...names, ...Object.values(value).flatMap(textsIn)];
}

/** One of these tags. */
const anyTag = (name: string, values: readonly string[]) =>
  `(${values.map((value) => tagOf(name, value)).join(' OR ')})`;

type Tagged = Pick<AuditFilter, 'action' | 'actor' | 'outcome' | 'projectId' | 'tokenId' | 'batch'>;

// Neither a letter nor a digit, so no word contains it. It is not ASCII, so the tokenizer does not split there.
const TAG_PREFIX = '→';

/** IDs, and words that are known, differ without their other characters. The names of actors, such as `ci1` and `ci-1`, do not. */
function tagOf(name: string, value: string): string {
  const written = (other: string) =>
    name === 'actor' ? `${TAG_PREFIX}${other.charCodeAt(0).toString(16)}${TAG_PREFIX}` : '';
  return `${TAG_PREFIX}${name}${value.replace(/[^a-z0-9]/g, written)}`;
}

function tagsOf({
  action,
  actor,
  outcome,
  projectId,
  tokenId,
  batch,
}: { [K in keyof Tagged]: Tagged[K] | null }): string[] {
  const named = { action, actor, outcome, project: projectId, token: tokenId, batch };
  return Object.entries(named).flatMap(([name, value]) => (value == null ? [] : tagOf(name, value)));
}

/** Whether a filter uses the word index. Other filters (token, project, or none) use an index in order of time. */
export const usesWordIndex = ({ text, action, actor, outcome }: AuditFilter): boolean =>
  (text ?? action ?? actor ?? outcome) !== undefined;

/** SQL for the newest row IDs that match a filter, before `$atMs` and `$seq` if there is a position. */
export function rowidsOf(filter: AuditFilter, hasPosition: boolean): { sql: string; bind: Bind } {
  const { among, sinceMs, untilMs, text } = filter;
  const projects = among && filter.projectId === undefined ? [anyTag('project', among)] : [];
  const words = [...projects, ...tagsOf(filter), ...searchedIn(text ?? '').map(prefixQuery)];
  const bind: Bind = { words: words.join(' AND ') };
  const conditions = ['audit_words MATCH $words'];
  if (sinceMs !== undefined) {
    conditions.push(`rowid >= ${firstRowidAt('$sinceMs')}`);
    bind.sinceMs = sinceMs;
  }
  if (untilMs !== undefined) {
    conditions.push(`rowid < ${firstRowidAt('$untilMs')}`);
    bind.untilMs = untilMs;
  }
  if (hasPosition) conditions.push(`rowid < ${firstRowidAt('$atMs')} + $seq % ${ROWIDS_PER_MS}`);
  return { sql: `SELECT rowid AS place FROM audit_words WHERE ${conditions.join(' AND ')} ORDER BY rowid DESC`, bind };
}

/** Condition that record `a` has row ID `p.place`. */
export const HAS_ROWID = `a.recorded_at = p.place / ${ROWIDS_PER_MS} AND a.seq % ${ROWIDS_PER_MS} = p.place % ${ROWIDS_PER_MS}`;

/** Prefix query. The word contains only letters and digits, so nothing that has a meaning in the query syntax. */
const prefixQuery = (word: string) => `"${word}"*`;
