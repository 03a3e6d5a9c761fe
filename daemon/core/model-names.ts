/**
 * Which model names are stored. Clients could invent names without limit. Each day, up to 500 models that the provider answered for are
 * stored by name, and up to 100 that it did not answer for (up to 10 per token, so that one client cannot use up all names); these show
 * which model failed. All other models are `other`.
 */
import { MS_PER_UNIT } from '../api/vocabulary.js';
import type { RequestEnded } from './events.js';

const MAX_MODELS = 500;
const MAX_UNANSWERED_MODELS = 100;
const MAX_UNANSWERED_PER_TOKEN = 10;
const OTHER = 'other';

export class ModelNames {
  /** Models that the provider answered for today. */
  readonly #answered = new Set<string>();
  /** Models that were requested today without a successful response. */
  readonly #unanswered = new Set<string>();
  /** How many of those each token was the first to request. */
  readonly #unansweredOf = new Map<string, number>();
  #day = 0;

  /** The name to count a request under; '' if it has no model or no known token. Asking again for the same request gives the same name. */
  nameFor({ model, status, tokenId, timeMs }: Pick<RequestEnded, 'model' | 'status' | 'tokenId' | 'timeMs'>): string {
    if (model === null || tokenId === null) return '';
    const day = Math.floor(timeMs / MS_PER_UNIT.d);
    if (day !== this.#day) {
      this.#day = day;
      this.#answered.clear();
      this.#unanswered.clear();
      this.#unansweredOf.clear();
    }
    if (this.#answered.has(model)) return model;
    const isNamed = status < 400 ? this.#nameAnswered(model) : this.#nameUnanswered(model, tokenId);
    return isNamed ? model : OTHER;
  }

  #nameAnswered(model: string): boolean {
    if (this.#answered.size >= MAX_MODELS) return false;
    this.#answered.add(model);
    return true;
  }

  #nameUnanswered(model: string, tokenId: string): boolean {
    if (this.#unanswered.has(model)) return true;
    const requested = this.#unansweredOf.get(tokenId) ?? 0;
    if (this.#unanswered.size >= MAX_UNANSWERED_MODELS || requested >= MAX_UNANSWERED_PER_TOKEN) return false;
    this.#unanswered.add(model);
    this.#unansweredOf.set(tokenId, requested + 1);
    return true;
  }
}
