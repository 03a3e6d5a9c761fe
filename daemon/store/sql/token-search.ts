/** Searches tokens by words: a part of the name, or the beginning of the ID. */
import type { TokenFilter } from '../../core/ports.js';
import type { Bind } from './database.js';
import type { Dialect } from './dialect.js';

/** The index with the names of all tokens. */
export const BY_NAME = 'tokens_name_folded';

const nameContains = ({ contains }: Dialect, of = '') => contains('t.name_folded', `$part${of}`);
const idStartsWith = (of = '') => `t.id >= $text${of} AND t.id < $textEnd${of}`;
const canStartId = (text: string) => /^[0-9a-f-]{1,36}$/i.test(text);

/**
 * Condition that the name contains the text, ignoring case, or that the ID starts with it.
 *
 * @param of suffix for the bind names, if there are several texts.
 */
export function textCondition(text: string, dialect: Dialect, of = ''): [string, Bind] {
  const named = nameContains(dialect, of);
  return [canStartId(text) ? `${named} OR (${idStartsWith(of)})` : named, textBind(text, of)];
}

function textBind(text: string, of = ''): Bind {
  const lower = text.toLowerCase();
  const part = { [`part${of}`]: lower };
  // `~` sorts after every character of an ID.
  return canStartId(text) ? { ...part, [`text${of}`]: lower, [`textEnd${of}`]: `${lower}~` } : part;
}

/** The longest text that every match must contain, if any: it probably has the fewest matches. */
export function longestText({ text, words = [] }: TokenFilter): string | undefined {
  const wanted = words.filter(({ isExcluded }) => !isExcluded).map((word) => word.text);
  if (text !== undefined) wanted.push(text);
  return wanted.sort((a, b) => b.length - a.length)[0];
}

/** The query for the IDs of up to `most` tokens that match `text`. Without a text with few matches it reads all names. */
export function idsWithText(text: string, dialect: Dialect, most: number): { sql: string; bind: Bind } {
  const first = (condition: string) => `SELECT * FROM (SELECT t.id FROM tokens t ${condition} LIMIT ${most}) few`;
  const named = first(`${dialect.indexHint(BY_NAME)} WHERE ${nameContains(dialect)}`);
  // Not as one condition: comparing each ID as well would take longest.
  const sql = canStartId(text) ? `${named} UNION ${first(`WHERE ${idStartsWith()}`)}` : named;
  return { sql, bind: textBind(text) };
}
