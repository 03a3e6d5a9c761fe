/** Conversion of usage between the core's values and the shapes of daemon/api. */
import type * as z from 'zod';
import type { WireUsageLine } from '../../api/contract.js';
import type * as schemas from '../../api/schemas.js';
import type { Names, UsageDimension, UsageLine, UsageQuery } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { DAY_MS, HOUR_MS } from '../../core/usage.js';
import { wireCost } from './wire-cost.js';
import { wireFailures } from './wire-failures.js';
import { isoTime, pastMs } from './wire.js';

const USAGE_SHOWN_MS = 7 * DAY_MS;

/** @throws {Refusal} if the time range ends before it begins. */
export function usageQuery(query: z.output<typeof schemas.usageQuery>, nowMs: number): UsageQuery {
  const untilMs = Math.max(0, pastMs(query.until, nowMs) ?? nowMs);
  const sinceMs = Math.max(0, pastMs(query.since, nowMs) ?? untilMs - USAGE_SHOWN_MS);
  if (sinceMs > untilMs) {
    throw new Refusal('invalid_request', 'since must not be after until (default: now)');
  }
  return {
    by: new Set((query.by?.split(',') ?? []) as UsageDimension[]),
    sinceMs: Math.floor(sinceMs / HOUR_MS) * HOUR_MS,
    untilMs: Math.ceil(untilMs / HOUR_MS) * HOUR_MS,
    projectId: query.project_id,
    tokenId: query.token_id,
  };
}

const nullIfNone = (text: string) => (text === '' ? null : text);

/** @param names of the tokens and projects in the line; null for those that are missing. */
export const wireUsageLine = (line: UsageLine, { tokens, projects }: Names): WireUsageLine => ({
  ...(line.tokenId !== undefined && {
    token_id: nullIfNone(line.tokenId),
    token_name: tokens.get(line.tokenId) ?? null,
  }),
  ...(line.projectId !== undefined && {
    project_id: nullIfNone(line.projectId),
    project_name: projects.get(line.projectId) ?? null,
  }),
  ...(line.model !== undefined && { model: nullIfNone(line.model) }),
  ...(line.hourMs !== undefined && { hour: isoTime(line.hourMs) }),
  ...(line.dayMs !== undefined && { day: isoTime(line.dayMs) }),
  requests: line.requests,
  hits: line.hits,
  ...wireFailures(line),
  prompt_tokens: line.promptTokens,
  completion_tokens: line.completionTokens,
  cache_read_tokens: line.cacheReadTokens,
  cache_write_tokens: line.cacheWriteTokens,
  ...wireCost(line),
});
