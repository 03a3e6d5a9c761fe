import { addedNano, NANO_PER_USD } from '../api/money.js';
import type { RequestEnded } from '../core/events.js';
import { holdsSecret } from '../core/masking.js';
import type { Sample } from './family.js';

const MAX_PROJECTS = 50;
const OTHER = 'other';

/** Cost of requests by project. The first 50 projects with a cost have series of their own, by name; later ones share `other`. */
export class CostMetrics {
  /** In nano-USD. */
  readonly #projects = new Map<string, number>();
  /** Requests whose cost is unknown. */
  unpriced = 0;

  record({ costNano, projectName }: RequestEnded): void {
    if (costNano === 0) return;
    if (costNano === null) {
      this.unpriced += 1;
      return;
    }
    const name = this.#nameFor(projectName ?? OTHER);
    this.#projects.set(name, addedNano(this.#projects.get(name) ?? 0, costNano));
  }

  *usd(): Iterable<Sample> {
    for (const [project, nano] of this.#projects) yield { labels: { project }, value: nano / NANO_PER_USD };
  }

  #nameFor(name: string): string {
    if (this.#projects.has(name)) return name;
    const named = this.#projects.size - (this.#projects.has(OTHER) ? 1 : 0);
    return named < MAX_PROJECTS && !holdsSecret(name) ? name : OTHER;
  }
}
