import type { RequestEnded } from '../core/events.js';
import { holdsSecret } from '../core/masking.js';
import type { Sample } from './family.js';

const MAX_MODELS = 100;
const OTHER = 'other';
const LOOKS_LIKE_A_MODEL = /^[\w.:/@+-]{1,64}$/;

interface Counts {
  prompt: number;
  completion: number;
  cacheRead: number;
  cacheWrite: number;
}

/**
 * Model tokens by model. The first 100 models for which a provider counts tokens have their own series; all later ones share one. A
 * project gets at most half of the series that are left: some servers count tokens for any name, so that its clients may invent names.
 */
export class ModelMetrics {
  readonly #models = new Map<string, Counts>();
  /** How many of the series each project was the first to need. */
  readonly #firstOf = new Map<string, number>();
  /** Responses that could be parsed but did not report their token usage. */
  missing = 0;

  record({ model, usage, outcome, cache, projectId }: RequestEnded): void {
    if (cache === 'hit') return; // Counted when the upstream sent the response.
    if (usage === null) {
      if (model !== null && outcome === 'ok') this.missing += 1;
      return;
    }
    const counted = this.#countsOf(model, projectId ?? '');
    counted.prompt += usage.promptTokens ?? 0;
    counted.completion += usage.completionTokens ?? 0;
    counted.cacheRead += usage.cacheReadTokens ?? 0;
    counted.cacheWrite += usage.cacheWriteTokens ?? 0;
  }

  *tokens(): Iterable<Sample> {
    for (const [model, { prompt, completion }] of this.#models) {
      yield { labels: { model, kind: 'prompt' }, value: prompt };
      yield { labels: { model, kind: 'completion' }, value: completion };
    }
  }

  /** Parts of the prompt tokens. */
  *promptCacheTokens(): Iterable<Sample> {
    for (const [model, { cacheRead, cacheWrite }] of this.#models) {
      yield { labels: { model, kind: 'read' }, value: cacheRead };
      yield { labels: { model, kind: 'write' }, value: cacheWrite };
    }
  }

  #countsOf(model: string | null, projectId: string): Counts {
    const known = this.#models.get(model ?? OTHER);
    if (known) return known;
    const isNameable = model !== null && LOOKS_LIKE_A_MODEL.test(model) && !holdsSecret(model);
    const first = this.#firstOf.get(projectId) ?? 0;
    const name = isNameable && first < MAX_MODELS - this.#models.size ? model : OTHER;
    const existing = this.#models.get(name);
    if (existing) return existing;
    if (name !== OTHER) this.#firstOf.set(projectId, first + 1);
    const counted = { prompt: 0, completion: 0, cacheRead: 0, cacheWrite: 0 };
    this.#models.set(name, counted);
    return counted;
  }
}
