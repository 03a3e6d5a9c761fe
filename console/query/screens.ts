/** How the terms of a line become a query for the API, and a predicate for what the API does not filter. */
import type { WireProject } from '../../daemon/api/contract.js';
import { formProviderOf } from '../../daemon/api/providers.js';
import { keysOf } from './keys.js';
import { fitsChoice, fitsWords, TermReader } from './reader.js';
import { quotedValue, type Term } from './terms.js';
import type { KnownNames, TermsResult } from './types.js';
import * as values from './values.js';

// The names of the keys do not depend on it.
const NO_NAMES: KnownNames = { projects: [] };

const MAX_WORDS = 10;
const MAX_WORD_LENGTH = 100;

export function tokenReading(terms: readonly Term[], { projects }: KnownNames): TermsResult<'tokens'> {
  const reader = new TermReader(terms, keysOf('tokens', NO_NAMES));
  const expires = reader.bounds('expires', values.time);
  const used = reader.bounds('used', values.percent);
  const spent = reader.bounds('spent', values.dollars);
  const left = reader.bounds('left', values.percent);
  const isSpan = expires.under !== undefined && !expires.under.includes('T');
  return reader.reading({
    ...wordQuery(reader),
    project_id: reader.selection('project', values.projectIn(projects)),
    state: reader.selection('state', values.tokenState.resolve),
    // "Expires within two hours" excludes tokens that have already expired.
    expires_after: expires.over ?? (isSpan && !expires.under?.startsWith('-') ? '0s' : undefined),
    expires_before: expires.under,
    ...creationQuery(reader),
    idle_over: reader.over('idle', values.span),
    errors_over: reader.over('errors', values.errors),
    model: reader.selection('model', values.modelPart),
    allows: reader.selection('allows', values.modelPattern),
    limited: limitedQuery(reader),
    issued_by: reader.only('by', values.issuer.resolve),
    used_over: used.over,
    used_under: used.under,
    budget: reader.only('budget', values.budget.resolve),
    spent_over: spent.over,
    spent_under: spent.under,
    left_over: left.over,
    left_under: left.under,
  });
}

function limitedQuery(reader: TermReader): string | undefined {
  const value = reader.only('limited', values.isLimited.resolve);
  return value === undefined ? undefined : String(value === 'yes');
}

/** Created more than 7 days ago is before a time, but more than 2030-01-31 is after it. */
function creationQuery(reader: TermReader): { created_after?: string; created_before?: string } {
  const { under, over } = reader.bounds('created', values.timeAgo);
  const isTime = (written: string) => written.includes('T');
  const query: { created_after?: string; created_before?: string } = {};
  if (under !== undefined) query[isTime(under) ? 'created_before' : 'created_after'] = under;
  if (over === undefined) return query;
  const side = isTime(over) ? 'created_after' : 'created_before';
  const [last] = reader.of('created').slice(-1);
  if (query[side] === undefined) query[side] = over;
  else if (last) reader.refuse(last, `a time ${side.slice(8)} which it was created is given twice`);
  return query;
}

function wordQuery(reader: TermReader): { q?: string; words?: string } {
  const words = reader.words();
  const tooLong = words.find(({ text }) => Array.from(text).length > MAX_WORD_LENGTH);
  if (tooLong) reader.refuse(tooLong.term, `a word can have up to ${MAX_WORD_LENGTH} characters`);
  const tooMany = words[MAX_WORDS];
  if (tooMany) reader.refuse(tooMany.term, `use up to ${MAX_WORDS} words`);
  const [first] = words;
  if (!first) return {};
  if (words.length === 1 && !first.isNegated) return { q: first.text };
  return { words: words.map(({ text, isNegated }) => `${isNegated ? '!' : ''}${quotedValue(text)}`).join(' ') };
}

export function projectReading(terms: readonly Term[]): TermsResult<'projects'> {
  const reader = new TermReader(terms, keysOf('projects', NO_NAMES));
  const isIn = fitsChoice(reader.choice('state', values.projectState.resolve));
  const hasProvider = fitsChoice(reader.choice('provider', values.provider.resolve));
  const hasWords = fitsWords(reader);
  return reader.reading({}, (project: WireProject) => {
    const { is_active: isActive, name, id } = project;
    return isIn(isActive ? 'active' : 'inactive') && hasProvider(formProviderOf(project)) && hasWords([name], [id]);
  });
}

export function auditReading(terms: readonly Term[], { projects, tokens }: KnownNames): TermsResult<'audit'> {
  const reader = new TermReader(terms, keysOf('audit', NO_NAMES));
  const words = reader.words();
  for (const { isNegated, term } of words) {
    if (isNegated) reader.refuse(term, 'words cannot be negated in the audit log');
  }
  const text = words.map((word) => word.text).join(' ');
  const first = words[0]?.term;
  if (first && !/[\p{L}\p{N}]/u.test(text)) reader.refuse(first, 'a word needs a letter or a digit');
  if (first && Array.from(text).length > MAX_WORD_LENGTH)
    reader.refuse(first, `all words together can have up to ${MAX_WORD_LENGTH} characters`);
  return reader.reading({
    action: reader.only('action', values.action.resolve),
    actor: reader.only('actor', values.actor.resolve),
    outcome: reader.only('outcome', values.outcome.resolve),
    project_id: reader.only('project', values.projectIn(projects)),
    token_id: reader.only('token', values.tokenIn(tokens)),
    batch: reader.only('batch', values.batch),
    since: reader.only('since', values.timeAgo),
    until: reader.only('until', values.timeAgo),
    q: text === '' ? undefined : text,
  });
}
