/** Filter keys of each screen, and how terms become a query for the API and a predicate. */
import type { EventQuery, WireEvent, WireProject } from '../../daemon/api/contract.js';
import type { Completion, FilteredScreen, FilterProblem, KnownNames, TermsResult } from './types.js';
import { type TermPart, quotedValue, type Term } from './terms.js';
import * as values from './values.js';
import type { ValueResolver } from './values.js';

export interface FilterKey {
  name: string;
  what: string;
  values: readonly Completion[];
}

const spans = (...texts: string[]): Completion[] => texts.map((insert) => ({ insert, what: '' }));

/** The filter keys of a screen, for help and completion. */
export function keysOf(screen: FilteredScreen, { projects, tokenIds = [] }: KnownNames): FilterKey[] {
  const project: FilterKey = { name: 'project', what: 'name or ID', values: values.projectCompletions(projects) };
  const token: FilterKey = { name: 'token', what: 'ID', values: tokenIds.map((insert) => ({ insert, what: '' })) };
  switch (screen) {
    case 'tokens':
      return [
        { name: 'state', what: 'for example active or !revoked', values: values.tokenState.completions },
        project,
        { name: 'expires', what: 'for example <2h or >7d', values: spans('<1h', '<1d', '<7d', '>7d', '>30d') },
        { name: 'used', what: 'share of the cap, for example >90%', values: spans('>50%', '>90%', '<10%') },
      ];
    case 'projects':
      return [{ name: 'state', what: 'active or inactive', values: values.projectState.completions }];
    case 'audit':
      return [
        { name: 'action', what: 'for example token.revoke', values: values.action.completions },
        { name: 'actor', what: 'who did it', values: values.actor.completions },
        { name: 'outcome', what: 'how it ended', values: values.outcome.completions },
        project,
        token,
        { name: 'since', what: 'for example 24h', values: spans('1h', '24h', '7d') },
        { name: 'until', what: 'for example 1h', values: spans('1h', '24h', '7d') },
      ];
    case 'events':
      return [
        { name: 'status', what: 'for example 4xx,5xx', values: values.statuses.completions },
        { name: 'kind', what: 'kind of event', values: values.kind.completions },
        project,
        token,
      ];
  }
}

/** The included and the excluded values of a key. */
interface Selection {
  wanted: string[];
  unwanted: string[];
}

/** Reader of the terms of a line, which collects their problems. */
class TermReader {
  readonly #terms: readonly Term[];
  readonly problems: FilterProblem[] = [];
  isOpen = false;
  readonly #names: readonly string[];

  constructor(terms: readonly Term[], screen: FilteredScreen) {
    this.#terms = terms;
    this.#names = keysOf(screen, { projects: [] }).map(({ name }) => name);
    for (const term of terms) this.#look(term);
  }

  #look(term: Term): void {
    if (term.isOpen) this.isOpen = true;
    else if (term.key !== null && !this.#names.includes(term.key)) {
      const rest = `use ${this.#names.join(', ')}, or quote it to search for the word`;
      this.refuse(term, `no such key: ${term.key}; ${rest}`);
    } else if (term.key === null && term.parts.every(({ text }) => text === '')) this.isOpen = true;
  }

  refuse({ at, length }: Pick<Term, 'at' | 'length'>, message: string): void {
    this.problems.push({ at, length, message });
  }

  of(key: string): Term[] {
    return this.#terms.filter((term) => term.key === key && !term.isOpen);
  }

  words(): { text: string; isNegated: boolean; term: Term }[] {
    return this.#terms.flatMap((term) => {
      const [part] = term.parts;
      return term.key === null && !term.isOpen && part?.text
        ? [{ text: part.text, isNegated: term.isNegated, term }]
        : [];
    });
  }

  /** @returns undefined for an invalid or incomplete value. */
  value(part: TermPart, resolve: ValueResolver): string | undefined {
    const found = resolve(part);
    if (found === 'open') this.isOpen = true;
    else if ('problem' in found) this.refuse({ at: part.at, length: Math.max(1, part.length) }, found.problem);
    else return found.value;
    return undefined;
  }

  choice(key: string, resolve: ValueResolver): Selection {
    const choice: Selection = { wanted: [], unwanted: [] };
    for (const { isNegated, parts } of this.of(key)) {
      for (const part of parts) {
        const value = this.value(part, resolve);
        if (value !== undefined) choice[isNegated ? 'unwanted' : 'wanted'].push(value);
      }
    }
    return choice;
  }

  /** The values in the syntax of the API: `a,b` or `!a,b`. */
  selection(key: string, resolve: ValueResolver): string | undefined {
    const { wanted, unwanted } = this.choice(key, resolve);
    const left = wanted.filter((value) => !unwanted.includes(value));
    if (left.length > 0) return unique(left).join(',');
    const [last] = this.of(key).slice(-1);
    if (wanted.length > 0 && last) this.refuse(last, `the ${key} values exclude each other`);
    return unwanted.length > 0 ? `!${unique(unwanted).join(',')}` : undefined;
  }

  /** The value of a key for which the API takes only one. */
  only(key: string, resolve: ValueResolver): string | undefined {
    const [first, ...others] = this.of(key);
    for (const term of others) this.refuse(term, `only one ${key} at a time`);
    if (!first) return undefined;
    const [part, ...more] = first.parts;
    if (first.isNegated) this.refuse(first, `${key} cannot be negated`);
    if (more.length > 0) this.refuse(first, `only one ${key} at a time`);
    return part && this.value(part, resolve);
  }

  /** The values after `<` and `>`, each given at most once. */
  bounds(key: string, resolve: ValueResolver): { under?: string; over?: string } {
    const bounds: { under?: string; over?: string } = {};
    for (const term of this.of(key)) {
      const [part] = term.parts;
      const sign = part?.text.charAt(0) ?? '';
      const side = sign === '<' ? 'under' : sign === '>' ? 'over' : null;
      if (part?.text === '' && part.isLast) this.isOpen = true;
      else if (!part || side === null || term.parts.length > 1) this.refuse(term, `write ${key}:<… or ${key}:>…`);
      else if (term.isNegated) this.refuse(term, `${key} cannot be negated; swap < and > instead`);
      else if (bounds[side] !== undefined) this.refuse(term, `${key}:${sign} is given twice`);
      else {
        const value = this.value(
          { ...part, text: part.text.slice(1), at: part.at + 1, length: part.length - 1 },
          resolve,
        );
        if (value !== undefined) bounds[side] = value;
      }
    }
    return bounds;
  }

  reading<S extends FilteredScreen>(
    query: Record<string, string | undefined>,
    matches: TermsResult<S>['matches'] = () => true,
  ): TermsResult<S> {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const { problems, isOpen } = this;
    return { query: Object.fromEntries(given), matches, problems, isOpen };
  }
}

const unique = (values: readonly string[]) => [...new Set(values)];

const MAX_WORDS = 10;
const MAX_WORD_LENGTH = 100;

export function tokenReading(terms: readonly Term[], { projects }: KnownNames): TermsResult<'tokens'> {
  const reader = new TermReader(terms, 'tokens');
  const expires = reader.bounds('expires', values.time);
  const used = reader.bounds('used', values.percent);
  const isSpan = expires.under !== undefined && !expires.under.includes('T');
  return reader.reading({
    ...wordQuery(reader),
    project_id: reader.selection('project', values.projectIn(projects)),
    state: reader.selection('state', values.tokenState.resolve),
    // "Expires within two hours" excludes tokens that have already expired.
    expires_after: expires.over ?? (isSpan && !expires.under?.startsWith('-') ? '0s' : undefined),
    expires_before: expires.under,
    used_over: used.over,
    used_under: used.under,
  });
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
  const reader = new TermReader(terms, 'projects');
  const isIn = fitsChoice(reader.choice('state', values.projectState.resolve));
  const hasWords = fitsWords(reader);
  return reader.reading({}, ({ is_active: isActive, name, id }: WireProject) => {
    return isIn(isActive ? 'active' : 'inactive') && hasWords([name], [id]);
  });
}

export function auditReading(terms: readonly Term[], { projects, tokenIds = [] }: KnownNames): TermsResult<'audit'> {
  const reader = new TermReader(terms, 'audit');
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
    token_id: reader.only('token', values.tokenIn(tokenIds)),
    since: reader.only('since', values.timeAgo),
    until: reader.only('until', values.timeAgo),
    q: text === '' ? undefined : text,
  });
}

/** The API filters the stream as far as it can; `matches` filters the rest. */
export function eventReading(terms: readonly Term[], { projects, tokenIds = [] }: KnownNames): TermsResult<'events'> {
  const reader = new TermReader(terms, 'events');
  const status = reader.choice('status', values.statuses.resolve);
  const kinds = reader.choice('kind', values.kind.resolve);
  const ofProjects = reader.choice('project', values.projectIn(projects));
  const ofTokens = reader.choice('token', values.tokenIn(tokenIds));
  const query: EventQuery = {
    ...(status.wanted.length > 0 && { status: unique(status.wanted).join(',') }),
    ...soleOf('kind', kinds),
    ...soleOf('project_id', ofProjects),
    ...soleOf('token_id', ofTokens),
  };
  const isKind = fitsChoice(kinds);
  const isOfProject = fitsChoice(ofProjects);
  const isOfToken = fitsChoice(ofTokens);
  const hasWords = fitsWords(reader);
  return reader.reading(
    query,
    (event: WireEvent) =>
      isKind(event.kind) &&
      isOfProject(event.project_id) &&
      isOfToken(event.token_id) &&
      hasStatus(event, status) &&
      hasWords(textsOf(event), [event.token_id, event.project_id, event.id]),
  );
}

const soleOf = (name: keyof EventQuery, { wanted }: Selection): EventQuery =>
  wanted.length === 1 ? { [name]: wanted[0] } : {};

function hasStatus(event: WireEvent, { wanted, unwanted }: Selection): boolean {
  if (!('status' in event)) return wanted.length === 0;
  const is = (written: readonly string[]) => values.isOfStatus(event.status, written);
  return (wanted.length === 0 || is(wanted)) && !is(unwanted);
}

function textsOf(event: WireEvent): (string | null)[] {
  if (event.kind !== 'request.completed') return [event.kind, event.actor, event.request_id];
  const { kind, method, path, status, code, outcome, model, request_id: requestId } = event;
  return [kind, `${method} ${path}`, String(status), code, outcome, model, requestId];
}

const fitsChoice =
  ({ wanted, unwanted }: Selection) =>
  (value: string | null) =>
    (wanted.length === 0 || (value !== null && wanted.includes(value))) &&
    (value === null || !unwanted.includes(value));

/** Matches a part of a text, ignoring case, or the prefix of an id. */
function fitsWords(reader: TermReader) {
  const words = reader.words().map(({ text, isNegated }) => ({ word: text.toLowerCase(), isNegated }));
  return (texts: readonly (string | null)[], ids: readonly (string | null)[]) =>
    words.every(({ word, isNegated }) => {
      const isThere =
        texts.some((text) => text?.toLowerCase().includes(word)) ||
        ids.some((id) => id?.toLowerCase().startsWith(word));
      return isThere !== isNegated;
    });
}
