/** Conversion of top reports between the core's values and the shapes of daemon/api. */
import type * as z from 'zod';
import type { WireTop, WireTopRow } from '../../api/contract.js';
import type * as schemas from '../../api/schemas.js';
import type { Names, TopFigures, TopGroup, TopQuery, TopSums } from '../../core/ports.js';
import { quantileOf, type TopReport } from '../../core/top.js';
import { wireCost } from './wire-cost.js';
import { wireFailures } from './wire-failures.js';
import { isoTime, roundedOrNull } from './wire.js';

export const topQuery = (query: z.output<typeof schemas.topQuery>): TopQuery => ({
  by: query.by,
  window: query.window,
  sort: query.sort,
  projectId: query.project_id,
  tokenId: query.token_id,
  limit: query.limit,
});

/** @param names of the tokens and projects in the report. */
export const wireTop = (query: TopQuery, report: TopReport, names: Names): WireTop => ({
  by: query.by,
  window: query.window,
  sort: query.sort,
  from: isoTime(report.fromMs),
  to: isoTime(report.toMs),
  step_seconds: report.stepMs / 1000,
  row_count: report.groupCount,
  total: { ...figuresOf(report.total), ...historyOf(report.total) },
  rows: report.groups.map((group) => rowOf(group, names)),
});

const rowOf = (group: TopGroup, { tokens, projects }: Names): WireTopRow => ({
  ...(group.tokenId !== null && { token_id: group.tokenId, token_name: tokens.get(group.tokenId) ?? null }),
  ...(group.projectId !== null && {
    project_id: group.projectId,
    project_name: projects.get(group.projectId) ?? null,
  }),
  ...(group.model !== null && { model: group.model === '' ? null : group.model }),
  ...figuresOf(group),
  last_used_at: isoTime(group.lastMs),
  ...historyOf(group),
});

const historyOf = ({ history, failureHistory }: TopFigures) => ({ history, error_history: failureHistory });

function figuresOf(sums: TopSums): Omit<WireTop['total'], 'history' | 'error_history'> {
  const { counts } = sums;
  return {
    requests: counts.requests,
    cache_hits: counts.cacheHits,
    ...wireFailures(counts),
    prompt_tokens: counts.promptTokens,
    completion_tokens: counts.completionTokens,
    ...wireCost(counts),
    p50_ms: roundedOrNull(quantileOf(sums, 'p50')),
    p95_ms: roundedOrNull(quantileOf(sums, 'p95')),
  };
}
