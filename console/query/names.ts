/** What a query names, for the front ends that look names up before they parse it. */
import { UUID_PATTERN } from '../../daemon/api/vocabulary.js';
import { SECRET } from './filter.js';
import { termsOf } from './terms.js';

interface NamesInQuery {
  hasProjects: boolean;
  /** Names of tokens, or the beginnings of their IDs. Whole IDs are not looked up. */
  tokens: string[];
}

/** @returns nothing of a line with a secret, which must not be sent. The parser refuses it. */
export function namesIn(line: string): NamesInQuery {
  const terms = SECRET.test(line) ? [] : termsOf(line);
  const texts = terms.flatMap(({ key, parts }) => (key === 'token' ? parts.map(({ text }) => text) : []));
  return {
    hasProjects: terms.some(({ key }) => key === 'project'),
    tokens: [...new Set(texts)].filter((text) => text !== '' && !UUID_PATTERN.test(text)),
  };
}

/**
 * The property by which both the query and the fields beside it select, in words: which of them is meant would not be clear.
 *
 * @returns undefined if there is none.
 */
export function selectedTwice(query: object, fields: object): string | undefined {
  const propertyOf = (field: string) => field.replace(/_(?:id|after|before|over|under)$/, '').replace(/^words$/, 'q');
  const given = new Set(Object.keys(query).map(propertyOf));
  const twice = Object.keys(fields)
    .map(propertyOf)
    .find((property) => given.has(property));
  return twice === 'q' ? 'words to search for' : twice;
}
