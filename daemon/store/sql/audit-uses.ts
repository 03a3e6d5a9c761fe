/** Uses of tokens as audit records: one record for each hour, token, result and model, with a count. */
import { summedUsd } from '../../api/money.js';
import type { NamedRecord } from '../../core/audit.js';
import type { AuditFilter, Position } from '../../core/ports.js';
import { AUDIT_OUTCOMES, type AuditOutcome, auditOutcomeOf, outcomesOf } from '../../core/use-record.js';
import { wordsIn } from './audit-words.js';
import type { Reader } from './database.js';
import { Conditions } from './lists.js';
import { type NameColumns, namesIn, namesOf } from './names.js';
import { firstOfEach, inProjects } from './scopes.js';
import { USAGE_HOUR, type UsageHourColumns } from './tables.js';

type UseRow = UsageHourColumns & NameColumns & { obfuscated: string | null };

/** An audit record and its position, from which the next page continues. */
export interface PositionedRecord {
  record: NamedRecord;
  position: Position;
}

const COLUMNS = `${USAGE_HOUR.list}, ${namesOf('u.token_id', 'u.project_id')},
  (SELECT t.obfuscated FROM tokens t WHERE t.id = u.token_id) AS obfuscated`;

export async function listUses(
  on: Reader,
  filter: AuditFilter,
  most: number,
  after: Position | null,
): Promise<PositionedRecord[]> {
  const { action, actor, batch, outcome, text = '' } = filter;
  if ((action ?? 'token.use') !== 'token.use' || (actor ?? 'token') !== 'token' || batch !== undefined) return [];
  const outcomes = AUDIT_OUTCOMES.filter((one) => (outcome ?? one) === one && holdsWords(one, text));
  if (outcomes.length === 0) return [];
  const where = conditions(filter, outcomes, after);
  const order = `ORDER BY u.hour_ms DESC, u.id DESC LIMIT ${most}`;
  const { among, projectId, tokenId } = filter;
  const isOfSeveral = among && (projectId ?? tokenId) === undefined;
  if (!isOfSeveral) inProjects(where, 'u.project_id', among);
  const { sql, bind } = isOfSeveral
    ? firstOfEach(among, 'u.project_id', where, (of) => `SELECT u.* FROM usage_hourly u ${of} ${order}`)
    : { sql: `SELECT u.* FROM usage_hourly u ${where.sql} ${order}`, bind: where.bind };
  const rows = await on.select<UseRow>(`SELECT ${COLUMNS} FROM (${sql}) u ${order}`, bind);
  return rows.map((row) => ({ record: recordOf(row), position: { value: row.hour_ms, id: `u${row.id}` } }));
}

/** Names, models and IDs are searched in changes only: the uses of a token are found by its ID, with `tokenId`. */
const holdsWords = (outcome: AuditOutcome, text: string): boolean =>
  wordsIn(text).every((word) => ['token', 'use', outcome].some((own) => own.startsWith(word)));

export async function useById(on: Reader, id: string): Promise<NamedRecord | null> {
  const [row] = await on.select<UseRow>(`SELECT ${COLUMNS} FROM usage_hourly u WHERE u.id = $id`, { id });
  return row ? recordOf(row) : null;
}

function conditions(filter: AuditFilter, outcomes: readonly AuditOutcome[], after: Position | null): Conditions {
  const { tokenId, projectId, sinceMs, untilMs } = filter;
  const where = new Conditions();
  if (tokenId !== undefined) where.and('u.token_id = $tokenId', { tokenId });
  if (projectId !== undefined) where.and('u.project_id = $projectId', { projectId });
  if (outcomes.length < AUDIT_OUTCOMES.length)
    where.and(`u.outcome IN ('${outcomes.flatMap(outcomesOf).join("', '")}')`);
  if (sinceMs !== undefined) where.and('u.hour_ms >= $sinceMs', { sinceMs });
  if (untilMs !== undefined) where.and('u.hour_ms < $untilMs', { untilMs });
  if (after) {
    const id = after.id.startsWith('u') ? after.id.slice(1) : ''; // Uses come before changes of the same time.
    where.and('u.hour_ms <= $atMs AND (u.hour_ms < $atMs OR u.id < $beforeId)', { atMs: after.value, beforeId: id });
  }
  return where;
}

function recordOf(row: UseRow): NamedRecord {
  const { outcome, ...hour } = USAGE_HOUR.of(row);
  const isCounted = hour.withTokens > 0;
  return {
    id: hour.id,
    timeMs: hour.hourMs,
    action: 'token.use',
    actor: 'token',
    user: null,
    outcome: auditOutcomeOf(outcome),
    projectId: hour.projectId || null,
    tokenId: hour.tokenId || null,
    ...namesIn(row),
    obfuscated: row.obfuscated,
    requestId: null,
    clientIp: null,
    reason: null,
    batch: null,
    undoOf: null,
    count: hour.requests,
    details: {
      outcome,
      code: hour.code || null,
      model: hour.model || null,
      hits: hour.hits,
      prompt_tokens: isCounted ? hour.promptTokens : null,
      completion_tokens: isCounted ? hour.completionTokens : null,
      cache_read_tokens: isCounted ? hour.cacheReadTokens : null,
      cache_write_tokens: isCounted ? hour.cacheWriteTokens : null,
      cost_usd: summedUsd(hour.costNano, hour.unpriced),
      unpriced_requests: hour.unpriced,
    },
  };
}
