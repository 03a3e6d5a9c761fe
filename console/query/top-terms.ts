/** How the words of `llmp top` and `:top` become a question for the API, and a predicate: `model 24h project:web gpt`. */
import type { WireTopRow } from '../../daemon/api/contract.js';
import { TOP_DIMENSIONS, TOP_WINDOWS, type TopDimension, type TopWindow } from '../../daemon/api/vocabulary.js';
import { keysOf } from './keys.js';
import { fitsPart, fitsWords, TermReader } from './reader.js';
import type { Term } from './terms.js';
import type { KnownNames, TermsResult } from './types.js';
import * as values from './values.js';

/** The daemon selects one project; `matches` tests names and models, of the rows that it sent. */
export function topReading(terms: readonly Term[], { projects }: KnownNames): TermsResult<'top'> {
  const reader = new TermReader(terms, keysOf('top', { projects: [] }));
  const isModel = fitsPart(reader.choice('model', values.modelPart));
  const hasWords = fitsWords(reader);
  const query = { project_id: reader.only('project', values.projectIn(projects)) };
  return reader.reading(query, ({ token_id, token_name, project_id, project_name, model }: WireTopRow) => {
    const texts = [token_name ?? null, project_name ?? null, model ?? null];
    return isModel(model ?? null) && hasWords(texts, [token_id ?? null, project_id ?? null]);
  });
}

export interface TopWords {
  /** Null: not given. */
  by: TopDimension | null;
  window: TopWindow | null;
  /** The rest of the line, and where it begins. */
  filter: string;
  at: number;
}

/** Takes what a row stands for and the window from the beginning of a line, in either order. The rest is a filter. */
export function topWords(text: string): TopWords {
  const found: TopWords = { by: null, window: null, filter: text, at: 0 };
  for (;;) {
    const [whole, word = ''] = /^\s*(\S+)(?=\s|$)/.exec(found.filter) ?? [''];
    const by = found.by === null ? TOP_DIMENSIONS.find((one) => one === word) : undefined;
    const window = found.window === null ? TOP_WINDOWS.find((one) => one === word) : undefined;
    if (!by && !window) return found;
    found.by ??= by ?? null;
    found.window ??= window ?? null;
    found.at += whole.length;
    found.filter = found.filter.slice(whole.length);
  }
}
