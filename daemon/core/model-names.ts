/**
 * Which model names are stored. Clients could invent names without limit, so there is a limit for each project and day: 500 models that
 * the provider answered for, and 100 that it did not (up to 10 per token); these show which model failed. All other models are `other`.
 *
 * A provider has answered for a model if its response names the model or reports token counts. A status alone says nothing: many
 * endpoints and redirects succeed whatever the model is called.
 *
 * **No project takes the names of another.** Beyond `MAX_NAMES` in all projects together, each project still has its first 50.
 */
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { RequestEnded } from './events.js';

const MAX_ANSWERED = 500;
const MAX_UNANSWERED = 100;
const MAX_UNANSWERED_PER_TOKEN = 10;
/** About 5 MB, or 10 MB of the longest names. */
const MAX_NAMES = 40_000;
const GUARANTEED_NAMES = 50;
const OTHER = 'other';

interface NamesOfProject {
  /** Models that the provider answered for today. */
  answered: Set<string>;
  /** Models that were requested today without an answer. */
  unanswered: Set<string>;
  /** How many of those each token was the first to request. */
  unansweredOf: Map<string, number>;
}

type NamedRequest = Pick<
  RequestEnded,
  'model' | 'isModelAnswered' | 'usage' | 'status' | 'tokenId' | 'projectId' | 'timeMs'
>;

export class ModelNames {
  readonly #projects = new Map<string, NamesOfProject>();
  /** Names of all projects. */
  #count = 0;
  #day = 0;

  /** The name to count a request under; '' if it has no model or no known token. Asking again for the same request gives the same name. */
  nameFor({ model, isModelAnswered, usage, status, tokenId, projectId, timeMs }: NamedRequest): string {
    if (model === null || tokenId === null) return '';
    const day = Math.floor(timeMs / MS_PER_UNIT.d);
    if (day !== this.#day) {
      this.#day = day;
      this.#projects.clear();
      this.#count = 0;
    }
    const names = this.#namesOf(projectId ?? '');
    if (names.answered.has(model)) return model;
    const isAnswered = status < 400 && (isModelAnswered === true || usage !== null);
    const isNamed = isAnswered ? this.#nameAnswered(names, model) : this.#nameUnanswered(names, model, tokenId);
    return isNamed ? model : OTHER;
  }

  #namesOf(projectId: string): NamesOfProject {
    let names = this.#projects.get(projectId);
    if (!names) {
      names = { answered: new Set(), unanswered: new Set(), unansweredOf: new Map() };
      this.#projects.set(projectId, names);
    }
    return names;
  }

  #nameAnswered(names: NamesOfProject, model: string): boolean {
    if (names.answered.size >= MAX_ANSWERED || !this.#hasRoom(names.answered)) return false;
    names.answered.add(model);
    this.#count += 1;
    return true;
  }

  #nameUnanswered({ unanswered, unansweredOf }: NamesOfProject, model: string, tokenId: string): boolean {
    if (unanswered.has(model)) return true;
    const requested = unansweredOf.get(tokenId) ?? 0;
    if (unanswered.size >= MAX_UNANSWERED || requested >= MAX_UNANSWERED_PER_TOKEN) return false;
    if (!this.#hasRoom(unanswered)) return false;
    unanswered.add(model);
    unansweredOf.set(tokenId, requested + 1);
    this.#count += 1;
    return true;
  }

  #hasRoom(names: ReadonlySet<string>): boolean {
    return this.#count < MAX_NAMES || names.size < GUARANTEED_NAMES;
  }
}
