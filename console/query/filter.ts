/**
 * The filter line: words, `key:value`, quotes for values with spaces, `!` for negation.
 *
 *   ci !old project:web state:active,rate_limited expires:<2h used:>90% "two words"
 *
 * Values of one key are alternatives (`state:active state:expired`, or with a comma); different terms must all match.
 * The API filters tokens and audit records, because only some pages are loaded: a filter that the API cannot express is reported as a
 * problem. Projects, which are all in memory, are filtered here, and so are events and the rows of Top, for what the API cannot express.
 */
import { SECRET_PATTERN } from '../../daemon/api/vocabulary.js';
import type { Completion, Filter, FilteredScreen, KnownNames, TermsResult } from './types.js';
import { fuzzyFound } from '../fuzzy.js';
import { eventReading } from './event-terms.js';
import { keysOf } from './keys.js';
import { auditReading, projectReading, tokenReading } from './screens.js';
import { quotedValue, termsOf, type Term } from './terms.js';
import { topReading } from './top-terms.js';

const READINGS: { [S in FilteredScreen]: (terms: readonly Term[], known: KnownNames) => TermsResult<S> } = {
  tokens: tokenReading,
  projects: projectReading,
  audit: auditReading,
  events: eventReading,
  top: topReading,
};

// Also matches the beginning of a token's secret, which must not leak either.
export const SECRET = new RegExp(`sk-(?:wt|op|ss)-|${SECRET_PATTERN.source}`, 'i');

export function parseFilter<S extends FilteredScreen>(text: string, screen: S, known: KnownNames): Filter<S> {
  const terms = termsOf(text);
  const secret = terms.find(({ at, length }) => SECRET.test(text.slice(at, at + length)));
  if (secret) return refused(secret);
  const { query, matches, problems, isOpen } = READINGS[screen](terms, known);
  const words = terms.flatMap(({ key, isNegated, parts }) => (key === null && !isNegated ? parts : []));
  return {
    query,
    matches,
    problems,
    isComplete: problems.length === 0 && !isOpen,
    words: words.map((part) => part.text.toLowerCase()).filter((word) => word !== ''),
  };
}

/** Parses a line that nobody is still typing: what is incomplete is a problem, too. */
export function parseWhole<S extends FilteredScreen>(text: string, screen: S, known: KnownNames): Filter<S> {
  // A value that is followed by a space is not the beginning of a longer one.
  const filter = parseFilter(`${text} `, screen, known);
  if (filter.isComplete || filter.problems.length > 0) return filter;
  const open = termsOf(text).find(({ isOpen, parts }) => isOpen || parts.every((part) => part.text === ''));
  const message = open?.isOpen ? 'a quote is not closed' : 'a word is missing here';
  return { ...filter, problems: [{ at: open?.at ?? 0, length: open?.length ?? text.length, message }] };
}

/** A secret must not get into a query, which may be logged, nor onto the screen. */
function refused<S extends FilteredScreen>({ at, length }: Term): Filter<S> {
  const message = 'this is a secret and was not sent; `llmp token whois` finds its token';
  return { query: {}, matches: () => false, problems: [{ at, length, message }], isComplete: false, words: [] };
}

export interface Suggestion {
  from: number;
  to: number;
  options: readonly Completion[];
}

/** Completions at the caret: keys and values. */
export function suggest(text: string, caret: number, screen: FilteredScreen, known: KnownNames): Suggestion {
  const keys = keysOf(screen, known);
  const term = termsOf(text).find(({ at, length }) => at < caret && caret <= at + length);
  if (!term) return { from: caret, to: caret, options: keys.map(keyCompletion) };
  const { key, isNegated, at, parts, valueAt } = term;
  if (key === null || caret < valueAt) {
    const from = isNegated ? at + 1 : at;
    const to = key === null ? at + term.length : valueAt;
    const begun = text.slice(from, caret).toLowerCase();
    return { from, to, options: keysFor(begun, keys).map(keyCompletion) };
  }
  const part = parts.findLast((one) => one.at <= caret);
  const from = part?.at ?? caret;
  const begun = text.slice(from, caret).replaceAll('"', '').toLowerCase();
  const values = keys.find(({ name }) => name === key)?.values ?? [];
  const options = fuzzyFound(begun, values, ({ insert }) => insert);
  const quoted = options.map(({ insert, what }) => ({ insert: quotedValue(insert), what }));
  return { from, to: from + (part?.length ?? 0), options: quoted };
}

/** A word of the filter is seldom meant as a key, so a key has to begin with the same letter. */
const keysFor = <K extends { name: string }>(begun: string, keys: readonly K[]): K[] =>
  fuzzyFound(begun, keys, ({ name }) => name).filter(({ name }) => name.startsWith(begun.charAt(0)));

const keyCompletion = ({ name, what }: { name: string; what: string }) => ({ insert: `${name}:`, what });
