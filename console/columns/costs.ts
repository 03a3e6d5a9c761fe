/** What the requests of projects have cost lately, and their most expensive models. */
import type { UsageQuery, WireUsageLine } from '../../daemon/api/contract.js';
import { type Cost, nanoOfCost, sumOfCosts } from '../../daemon/api/money.js';

const HOUR_MS = 3_600_000;
const HOURS = 7 * 24;
export const COSTS_TITLE = 'Cost, last 7 days';

/** The report that `projectCosts` is read from: the same hours as the period of 7 days in the usage report. */
export const costsQuery = (nowMs: number): UsageQuery => ({
  by: 'project,model',
  since: new Date((Math.floor(nowMs / HOUR_MS) - HOURS + 1) * HOUR_MS).toISOString(),
});

export interface ProjectCost extends Cost {
  id: string;
  name: string | null;
  /** The model with the highest known cost; null if no cost is known. */
  model: (Cost & { name: string | null }) | null;
}

/** The projects with a cost, the highest first. Projects of which no cost is known come last. */
export function projectCosts(lines: readonly WireUsageLine[]): ProjectCost[] {
  const byProject = new Map<string, WireUsageLine[]>();
  for (const line of lines) {
    const id = line.project_id ?? '';
    byProject.set(id, [...(byProject.get(id) ?? []), line]);
  }
  const projects = [...byProject].map(([id, ofProject]): ProjectCost => {
    const [most] = ofProject.toSorted(byCost);
    const model = most && nanoOfCost(most) > 0 ? { ...most, name: most.model ?? null } : null;
    return { id, name: ofProject[0]?.project_name ?? null, ...sumOfCosts(ofProject), model };
  });
  return projects.filter((it) => nanoOfCost(it) > 0 || it.unpriced_requests > 0).sort(byCost);
}

const byCost = (one: Cost, other: Cost) =>
  nanoOfCost(other) - nanoOfCost(one) || other.unpriced_requests - one.unpriced_requests;
