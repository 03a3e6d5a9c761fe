/**
 * Finding audit records by their words, and by what they are about.
 *
 * SQLite's full-text index says which records hold a word, in their order, so that a page of any filter is read off it
 * whatever the filter lets through: neither are a million records looked at nor are those found collected and sorted. What a
 * record is about (action, actor, outcome, project, token) stands in it as a word of its own, which begins with a sign that
 * no word of a text has: so neither does a search find it, nor can a text pass for it. Only SQLite understands this.
 * A record's row number there is its place: the time, and behind it the last 20 bits of its number.
 *
 * Elsewhere it is a table of words and of the numbers of the records that hold them, and of texts alone.
 */
import type { AuditRecord } from '../../core/audit.js';
import type { AuditFilter, CommittedRecord } from '../../core/ports.js';
import type { Bind, Connection } from './database.js';

const AT_ONE_TIME = 2 ** 20;

/** Where records stand, as SQL. A time in ms is more than 32 bits, which the driver hands on as a fraction. */
const PLACE_OF_RECORD = `recorded_at * ${AT_ONE_TIME} + seq % ${AT_ONE_TIME}`;
const placeOf = (time: string) => `CAST(${time} AS INTEGER) * ${AT_ONE_TIME}`;

export async function insertWords(tx: Connection, record: CommittedRecord): Promise<void> {
  if (tx.dialect.name !== 'sqlite') {
    await insertRows(tx, record);
    return;
  }
  await tx.execute(
    `INSERT INTO audit_words (rowid, words) SELECT ${PLACE_OF_RECORD}, $words FROM audit WHERE id = $id`,
    { id: record.id, words: [...marksOf(record), ...new Set(wordsIn(textOf(record)))].join(' ') },
  );
}

// As long as its column.
const LONGEST_WORD = 64;

async function insertRows(tx: Connection, record: CommittedRecord): Promise<void> {
  const words = [...new Set(wordsIn(textOf(record)).map((word) => word.slice(0, LONGEST_WORD)))];
  if (words.length === 0) return;
  const bind: Bind = { seq: record.seq };
  const rows = words.map((word, i) => {
    bind[`word_${i}`] = word;
    return `($word_${i}, $seq)`;
  });
  await tx.execute(`INSERT INTO audit_words (word, seq) VALUES ${rows.join(', ')}`, bind);
}

/** Where there is no full-text index: the conditions that records `a` hold words that begin so. */
export function wordConditions(text: string): [string, Bind][] {
  return wordsIn(text).map((word, i) => {
    const first = word.slice(0, LONGEST_WORD);
    return [
      `a.seq IN (SELECT w.seq FROM audit_words w WHERE w.word >= $first_${i} AND w.word < $last_${i})`,
      // Behind whatever a word goes on with.
      { [`first_${i}`]: first, [`last_${i}`]: `${first}\u{10ffff}` },
    ];
  });
}

/**
 * The words of a text: letters and digits, without regard to case. One place for what is kept and what is looked for;
 * SQLite is left to split at spaces, for what it takes for a letter depends on its age.
 */
export const wordsIn = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];

function textOf(record: AuditRecord): string {
  const { projectId, tokenId, obfuscated, requestId, clientIp, reason, details } = record;
  return [projectId, tokenId, obfuscated, requestId, clientIp, reason, ...textsIn(details)].join(' ');
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

type Marked = Pick<AuditFilter, 'action' | 'actor' | 'outcome' | 'projectId' | 'tokenId'>;

// Neither a letter nor a digit, yet beyond ASCII, where the index splits nothing.
const SIGN = '→';
const mark = (name: string, value: string) => `${SIGN}${name}${value.replace(/[^a-z0-9]/g, '')}`;

function marksOf({ action, actor, outcome, projectId, tokenId }: { [K in keyof Marked]: Marked[K] | null }): string[] {
  const named = { action, actor, outcome, project: projectId, token: tokenId };
  return Object.entries(named).flatMap(([name, value]) => (value == null ? [] : mark(name, value)));
}

/** Whether the index is the way to what a filter lets through. Records of a token or a project, and all, lie in order anyway. */
export const isByWords = ({ text, action, actor, outcome }: AuditFilter): boolean =>
  (text ?? action ?? actor ?? outcome) !== undefined;

/** The newest places that a filter lets through, as SQL, behind `$atMs` and `$seq` where they are given. */
export function placesOf(filter: AuditFilter, isBehind: boolean): { sql: string; bind: Bind } {
  const { sinceMs, untilMs, text } = filter;
  const bind: Bind = { words: [...marksOf(filter), ...wordsIn(text ?? '').map(beginning)].join(' AND ') };
  const conditions = ['audit_words MATCH $words'];
  if (sinceMs !== undefined) {
    conditions.push(`rowid >= ${placeOf('$sinceMs')}`);
    bind.sinceMs = sinceMs;
  }
  if (untilMs !== undefined) {
    conditions.push(`rowid < ${placeOf('$untilMs')}`);
    bind.untilMs = untilMs;
  }
  if (isBehind) conditions.push(`rowid < ${placeOf('$atMs')} + $seq % ${AT_ONE_TIME}`);
  return { sql: `SELECT rowid AS place FROM audit_words WHERE ${conditions.join(' AND ')} ORDER BY rowid DESC`, bind };
}

/** The condition that a record stands at a place. */
export const STANDS_AT = `a.recorded_at = p.place / ${AT_ONE_TIME} AND a.seq % ${AT_ONE_TIME} = p.place % ${AT_ONE_TIME}`;

/** What begins with the word. It holds letters and digits only, so nothing that would have a meaning in a query. */
const beginning = (word: string) => `"${word}"*`;
