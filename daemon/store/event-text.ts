/** JSON serialisation of events. Built by hand because `JSON.stringify` takes twice as long, and this runs for every request. */
import {
  type BudgetEvent,
  CHANGES_PUBLISHED,
  type ModelUsage,
  type PublishableEvent,
  type RequestEnded,
} from '../core/events.js';
import { usdOf } from '../api/money.js';
import type { NamedRecord, SubjectNames } from '../core/audit.js';
import { withoutSecrets } from '../core/masking.js';
import { randomFillSync } from 'node:crypto';

/** Maximum size of an event, in bytes of UTF-8. */
export const MAX_EVENT_BYTES = 512 * 1024;
// Limit for names, request IDs and error sentences. No real one is longer.
const MAX_NAME_LENGTH = 256;

/**
 * Serialises an event on one line, with a new event ID.
 *
 * @param instance the daemon that publishes it.
 */
export function eventText(event: PublishableEvent, instance: string): string {
  if (event.kind === 'change') return changeText(event.record, instance);
  if (event.kind === 'budget') return budgetText(event.event, instance);
  const { ended } = event;
  const id = uniqueId(ended.timeMs);
  if (ended.requestBody === null && ended.responseBody === null) return requestText(ended, id, instance, null, null);

  const request = bodyOf(ended.requestBody);
  const response = bodyOf(ended.responseBody);
  // Skip serialising an event that is certain to be too large: that would take as long as everything else here.
  if ((request?.length ?? 0) + (response?.length ?? 0) < MAX_EVENT_BYTES) {
    const whole = requestText(ended, id, instance, request, response);
    if (Buffer.byteLength(whole) <= MAX_EVENT_BYTES) return whole;
  }
  const bare = requestText(ended, id, instance, null, null);
  const room = Math.floor((MAX_EVENT_BYTES - Buffer.byteLength(bare)) / 2);
  return requestText(
    ended,
    id,
    instance,
    request && truncatedToFit(request, room),
    response && truncatedToFit(response, room),
  );
}

function requestText(
  ended: RequestEnded,
  id: string,
  instance: string,
  requestBody: string | null,
  responseBody: string | null,
): string {
  return (
    `{"schema":1,"id":"${id}","kind":"request.completed","time":"${timeText(ended.timeMs)}",` +
    `"request_id":${quoted(ended.requestId)},"instance":${quoted(instance)},` +
    `"project_id":${quotedOrNull(ended.projectId)},"token_id":${quotedOrNull(ended.tokenId)},${namesText(ended)},` +
    `"method":${quoted(ended.method)},"path":${quoted(ended.path)},"status":${ended.status},` +
    `"code":${quotedOrNull(ended.code)},"error":${nameText(ended.problem)},"upstream_request_id":${nameText(ended.upstreamRequestId)},` +
    `"outcome":"${ended.outcome}","cache":"${ended.cache}","duration_ms":${msText(ended.durationMs)},` +
    `"upstream_ms":${msText(ended.upstreamMs)},"first_byte_ms":${msText(ended.firstByteMs)},` +
    `"bytes_in":${ended.bytesIn},"bytes_out":${ended.bytesOut},"streamed":${ended.streamed},` +
    `"model":${nameText(ended.model)},"usage":${usageText(ended.usage)},"cost_usd":${costText(ended.costNano)},` +
    `"request_body":${quotedOrNull(requestBody)},"response_body":${quotedOrNull(responseBody)}}`
  );
}

function changeText(record: NamedRecord, instance: string): string {
  return (
    `{"schema":1,"id":"${uniqueId(record.timeMs)}","kind":${quotedOrNull(CHANGES_PUBLISHED[record.action] ?? null)},` +
    `"time":"${timeText(record.timeMs)}","request_id":${quotedOrNull(record.requestId)},` +
    `"instance":${quoted(instance)},"project_id":${quotedOrNull(record.projectId)},` +
    `"token_id":${quotedOrNull(record.tokenId)},${namesText(record)},"actor":${quoted(record.actor)},"user":${quotedOrNull(record.user)},"count":${record.count}}`
  );
}

function budgetText(event: BudgetEvent, instance: string): string {
  const { owner, mode, period, unit, limit, used, percent } = event.budget;
  const amount = (value: number) => (unit === 'usd' ? `"${usdOf(value)}"` : value);
  return (
    `{"schema":1,"id":"${uniqueId(event.timeMs)}","kind":"${event.kind}","time":"${timeText(event.timeMs)}","request_id":null,` +
    `"instance":${quoted(instance)},"project_id":${quoted(event.projectId)},"token_id":${quotedOrNull(event.tokenId)},` +
    `${namesText(event)},"actor":"system","user":null,"count":${event.count},` +
    `"budget":{"owner":"${owner}","mode":"${mode}","period":"${period}","unit":"${unit}",` +
    `"limit":${amount(limit)},"used":${amount(used)},"percent":${percent}}}`
  );
}

const namesText = ({ projectName, tokenName }: SubjectNames) =>
  `"project_name":${nameText(projectName)},"token_name":${nameText(tokenName)}`;

const MISSING =
  '{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null,"source":"missing","cache_read_tokens":null,"cache_write_tokens":null}';

function usageText(usage: ModelUsage | null): string {
  if (usage === null) return MISSING;
  const { promptTokens, completionTokens, totalTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return (
    `{"prompt_tokens":${promptTokens},"completion_tokens":${completionTokens},"total_tokens":${totalTokens},"source":"provider",` +
    `"cache_read_tokens":${cacheReadTokens},"cache_write_tokens":${cacheWriteTokens}}`
  );
}

const costText = (nano: number | null) => (nano === null ? 'null' : nano === 0 ? '"0.00"' : `"${usdOf(nano)}"`);

let writtenMs = NaN;
let written = '';

/** Cached, because many events share the same millisecond. */
function timeText(timeMs: number): string {
  if (timeMs !== writtenMs) {
    writtenMs = timeMs;
    written = new Date(timeMs).toISOString();
  }
  return written;
}

/** Rounded to the microsecond. */
const msText = (ms: number | null) => (ms === null ? 'null' : String(Math.round(ms * 1000) / 1000));

// Characters that JSON escapes, DEL, and everything beyond ASCII: half a surrogate pair has no encoding in UTF-8.
// eslint-disable-next-line no-control-regex
const NEEDS_ESCAPING = /["\\\u0000-\u001f\u007f-\uffff]/;

/** Replaces each unpaired surrogate with U+FFFD, because it has no encoding in UTF-8. */
const wellFormed = (text: string) => Buffer.from(text).toString();

function quoted(text: string): string {
  return NEEDS_ESCAPING.test(text) ? JSON.stringify(wellFormed(text)) : `"${text}"`;
}

const quotedOrNull = (text: string | null) => (text === null ? 'null' : quoted(text));

/** For values chosen by the upstream, the client or an operator: they may contain a secret and have any length. */
const nameText = (text: string | null) =>
  text === null
    ? 'null'
    : quoted(withoutSecrets(text.length > MAX_NAME_LENGTH ? text.slice(0, MAX_NAME_LENGTH) : text));

/** Truncates a body to the maximum event size at once, and masks credentials that it may repeat. */
const bodyOf = (body: string | null) => body && withoutSecrets(truncated(body, MAX_EVENT_BYTES));

const MARKED = /…\[cut: \d+ of (\d+) bytes\]$/;
const MAX_MARK_BYTES = 60;
const CHUNK = 1_000;

/** @param room how many bytes the body may take as JSON. */
function truncatedToFit(body: string, room: number): string {
  // Chunk by chunk, so that no character is escaped more than twice, however long the body is.
  let size = 2;
  for (let at = 0; at < body.length; at += CHUNK) {
    size += Buffer.byteLength(quoted(body.slice(at, at + CHUNK))) - 2;
    if (size > room - MAX_MARK_BYTES) return truncated(body, at);
  }
  return body;
}

/** Appends a mark with the original size, also when the body was truncated before. */
function truncated(body: string, maxCharacters: number): string {
  if (body.length <= maxCharacters) return body;
  const marked = MARKED.exec(body.slice(-MAX_MARK_BYTES));
  const wholeBytes = marked?.[1] ?? String(Buffer.byteLength(body));
  const textLength = body.length - (marked?.[0].length ?? 0);
  const text = body.slice(0, Math.min(maxCharacters, textLength)).replace(/[\ud800-\udbff]$/, '');
  return `${text}…[cut: ${Buffer.byteLength(text)} of ${wholeBytes} bytes]`;
}

const BYTES_EACH = 10;
const POOLED = 1_000;
const VARIANTS = '89ab';

const pool = Buffer.allocUnsafe(POOLED * BYTES_EACH);
let used = pool.length;

/**
 * Returns a UUIDv7 (RFC 9562, section 5.7). Random bytes are drawn in bulk: one system call per ID would cost more than the rest of
 * an event.
 */
export function uniqueId(timeMs: number): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.toString('hex', used, used + BYTES_EACH);
  used += BYTES_EACH;
  const time = timeMs.toString(16).padStart(12, '0');
  const variant = VARIANTS.charAt(Number.parseInt(random.charAt(3), 16) & 3);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}
