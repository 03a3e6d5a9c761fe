/** Reads the terms of a filter line by key, and collects their problems. */
import type { FilteredScreen, FilterKey, FilterProblem, TermsResult } from './types.js';
import type { Term, TermPart } from './terms.js';
import type { ValueResolver } from './values.js';

/** The included and the excluded values of a key. */
export interface Selection {
  wanted: string[];
  unwanted: string[];
}

/** Reader of the terms of a line, which collects their problems. */
export class TermReader {
  readonly #terms: readonly Term[];
  readonly problems: FilterProblem[] = [];
  isOpen = false;
  readonly #names: readonly string[];

  /** @param keys the keys that the line can have. */
  constructor(terms: readonly Term[], keys: readonly FilterKey[]) {
    this.#terms = terms;
    this.#names = keys.map(({ name }) => name);
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

  /** The value after `>`, of a key for which the API takes no upper bound. */
  over(key: string, resolve: ValueResolver): string | undefined {
    const { over, under } = this.bounds(key, resolve);
    if (under !== undefined) {
      for (const term of this.of(key)) if (term.parts[0]?.text.startsWith('<')) this.refuse(term, `write ${key}:>…`);
    }
    return over;
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

export const unique = (values: readonly string[]) => [...new Set(values)];

export const fitsChoice =
  ({ wanted, unwanted }: Selection) =>
  (value: string | null) =>
    (wanted.length === 0 || (value !== null && wanted.includes(value))) &&
    (value === null || !unwanted.includes(value));

/** Matches parts of a text in lower case. A text of null has no part. */
export const fitsPart =
  ({ wanted, unwanted }: Selection) =>
  (text: string | null): boolean => {
    const has = (part: string) => text?.toLowerCase().includes(part) ?? false;
    return (wanted.length === 0 || wanted.some(has)) && !unwanted.some(has);
  };

/** Matches a part of a text, ignoring case, or the prefix of an id. */
export function fitsWords(reader: TermReader) {
  const words = reader.words().map(({ text, isNegated }) => ({ word: text.toLowerCase(), isNegated }));
  return (texts: readonly (string | null)[], ids: readonly (string | null)[]) =>
    words.every(({ word, isNegated }) => {
      const isThere =
        texts.some((text) => text?.toLowerCase().includes(word)) ||
        ids.some((id) => id?.toLowerCase().startsWith(word));
      return isThere !== isNegated;
    });
}
