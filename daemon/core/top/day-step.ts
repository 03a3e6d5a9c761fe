/** The sums of rows of the hourly usage: of each token and model, and of each project and model with their hours. */
import type { TopGroup, TopHourRow } from '../ports.js';
import { HOUR_MS } from '../usage.js';
import { CellIndex } from './cell-index.js';
import { failuresIn, TOP_DAY_STEPS } from './counts.js';
import { Step } from './step.js';
import type { Subjects } from './subjects.js';

const FIRST_HOURS = 64;
/** Of a cell: the requests of each hour, then the failures of each hour. */
const HOUR_COUNTS = 2 * TOP_DAY_STEPS;

export class DayStep {
  readonly #firstMs: number;
  readonly tokens: Step;
  /** Cells of a project and model, so that a page of those looks at few cells only. Null if there are too many. */
  projects: Step | null;
  /** Of the cells of `projects`. */
  #hours = new Uint32Array(FIRST_HOURS * HOUR_COUNTS);

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
    this.tokens = new Step(firstMs);
    this.projects = new Step(firstMs);
  }

  /** @returns a function that adds a row. It keeps the indexes of the cells, so drop it when all have been added. */
  adder(subjects: Subjects, maxProjectCells: number): (row: TopHourRow) => void {
    const { tokens, models } = subjects;
    const [tokenIndex, projectIndex] = [new CellIndex(), new CellIndex()];
    return ({ tokenId, projectId, model: name, hourMs, counts }) => {
      if (tokenId === '') {
        this.tokens.addSums(null, counts, hourMs);
        this.projects?.addSums(null, counts, hourMs);
        return;
      }
      const token = tokens.find(tokenId) ?? subjects.retainToken(tokenId, projectId);
      const model = models.find(name) ?? models.retain(name);
      this.tokens.addSums(cellOf(this.tokens, tokenIndex, token, model), counts, hourMs);
      if (!this.projects) return;
      const cell = cellOf(this.projects, projectIndex, subjects.projectOf(token), model);
      this.projects.addSums(cell, counts, hourMs);
      this.#addHour(cell, Math.round((hourMs - this.#firstMs) / HOUR_MS), counts);
      if (this.projects.cells > maxProjectCells) this.#forgetProjects();
    };
  }

  /** Adds the hours of a cell of `projects` to the history of the group. */
  addHours({ history, failureHistory }: TopGroup, cell: number): void {
    const first = cell * HOUR_COUNTS;
    for (let hour = 0; hour < TOP_DAY_STEPS; hour += 1) {
      history[hour] = (history[hour] ?? 0) + (this.#hours[first + hour] ?? 0);
      failureHistory[hour] = (failureHistory[hour] ?? 0) + (this.#hours[first + TOP_DAY_STEPS + hour] ?? 0);
    }
  }

  #forgetProjects(): void {
    this.projects = null;
    this.#hours = new Uint32Array();
  }

  #addHour(cell: number, hour: number, counts: readonly number[]): void {
    if ((cell + 1) * HOUR_COUNTS > this.#hours.length) {
      const larger = new Uint32Array(this.#hours.length * 2);
      larger.set(this.#hours);
      this.#hours = larger;
    }
    const at = cell * HOUR_COUNTS + hour;
    this.#hours[at] = (this.#hours[at] ?? 0) + (counts[0] ?? 0);
    this.#hours[at + TOP_DAY_STEPS] = (this.#hours[at + TOP_DAY_STEPS] ?? 0) + failuresIn(counts);
  }
}

function cellOf(step: Step, index: CellIndex, subject: number, model: number): number {
  const known = index.find(step, subject, model);
  if (known >= 0) return known;
  const cell = step.addCell(subject, model);
  index.add(step, cell);
  return cell;
}
