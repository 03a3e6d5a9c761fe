/** The JSON of events, built by hand: `JSON.stringify` would take twice as long, and this is done for every request. */
import { CHANGES_PUBLISHED, type Happening, type ModelUsage, type RequestEnded } from '../core/events.js';
import type { AuditRecord } from '../core/audit.js';
import { withoutSecrets } from '../core/masking.js';
import { uniqueId } from './unique-ids.js';

/** No event is larger, in bytes of UTF-8. */
export const LARGEST_EVENT_BYTES = 512 * 1024;
// What an upstream calls its requests and models; more of it would be something else.
const LONGEST_NAME = 256;

/**
 * The event of what happened, with an id of its own, in one line.
 *
 * @param instance which daemon this is.
 */
export function eventText(happening: Happening, instance: string): string {
  if (happening.kind === 'change') return changeText(happening.record, instance);
  const { ended } = happening;
  const id = uniqueId(ended.timeMs);
  if (ended.requestBody === null && ended.responseBody === null) return requestText(ended, id, instance, null, null);

  const request = bodyOf(ended.requestBody);
  const response = bodyOf(ended.responseBody);
  // To make what is too large for certain would take as long as all the rest.
  if ((request?.length ?? 0) + (response?.length ?? 0) < LARGEST_EVENT_BYTES) {
    const whole = requestText(ended, id, instance, request, response);
    if (Buffer.byteLength(whole) <= LARGEST_EVENT_BYTES) return whole;
  }
  const bare = requestText(ended, id, instance, null, null);
  const room = Math.floor((LARGEST_EVENT_BYTES - Buffer.byteLength(bare)) / 2);
  return requestText(ended, id, instance, request && fitted(request, room), response && fitted(response, room));
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
    `"project_id":${quotedOrNull(ended.projectId)},"token_id":${quotedOrNull(ended.tokenId)},` +
    `"method":${quoted(ended.method)},"path":${quoted(ended.path)},"status":${ended.status},` +
    `"code":${quotedOrNull(ended.code)},"upstream_request_id":${nameText(ended.upstreamRequestId)},` +
    `"outcome":"${ended.outcome}","cache":"${ended.cache}","duration_ms":${msText(ended.durationMs)},` +
    `"upstream_ms":${msText(ended.upstreamMs)},"first_byte_ms":${msText(ended.firstByteMs)},` +
    `"bytes_in":${ended.bytesIn},"bytes_out":${ended.bytesOut},"streamed":${ended.streamed},` +
    `"model":${nameText(ended.model)},"usage":${usageText(ended.usage)},` +
    `"request_body":${quotedOrNull(requestBody)},"response_body":${quotedOrNull(responseBody)}}`
  );
}

function changeText(record: AuditRecord, instance: string): string {
  return (
    `{"schema":1,"id":"${uniqueId(record.timeMs)}","kind":${quotedOrNull(CHANGES_PUBLISHED[record.action] ?? null)},` +
    `"time":"${timeText(record.timeMs)}","request_id":${quotedOrNull(record.requestId)},` +
    `"instance":${quoted(instance)},"project_id":${quotedOrNull(record.projectId)},` +
    `"token_id":${quotedOrNull(record.tokenId)},"actor":${quoted(record.actor)},"count":${record.count}}`
  );
}

const MISSING = '{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null,"source":"missing"}';

function usageText(usage: ModelUsage | null): string {
  if (usage === null) return MISSING;
  const { promptTokens, completionTokens, totalTokens } = usage;
  return `{"prompt_tokens":${promptTokens},"completion_tokens":${completionTokens},"total_tokens":${totalTokens},"source":"provider"}`;
}

let writtenMs = NaN;
let written = '';

/** Many events end in the same millisecond. */
function timeText(timeMs: number): string {
  if (timeMs !== writtenMs) {
    writtenMs = timeMs;
    written = new Date(timeMs).toISOString();
  }
  return written;
}

/** To the microsecond. */
const msText = (ms: number | null) => (ms === null ? 'null' : String(Math.round(ms * 1000) / 1000));

// Neither what JSON escapes nor half a surrogate pair, which has no UTF-8.
// eslint-disable-next-line no-control-regex
const NEEDS_CARE = /["\\\u0000-\u001f\u007f-\uffff]/;

/** With U+FFFD for each half a surrogate pair, which has no UTF-8. */
const wellFormed = (text: string) => Buffer.from(text).toString();

function quoted(text: string): string {
  return NEEDS_CARE.test(text) ? JSON.stringify(wellFormed(text)) : `"${text}"`;
}

const quotedOrNull = (text: string | null) => (text === null ? 'null' : quoted(text));

/** Of the upstream's making, or the client's. */
const nameText = (text: string | null) =>
  text === null ? 'null' : quoted(withoutSecrets(text.length > LONGEST_NAME ? text.slice(0, LONGEST_NAME) : text));

/** What fits in no event is left out at once; what is in it may repeat a credential that nobody meant to keep. */
const bodyOf = (body: string | null) => body && withoutSecrets(cut(body, LARGEST_EVENT_BYTES));

const MARKED = /…\[cut: \d+ of (\d+) bytes\]$/;
const LONGEST_MARK_BYTES = 60;
const CHUNK = 1_000;

/** @param room so many bytes the JSON of it may have. */
function fitted(body: string, room: number): string {
  // Chunk by chunk, so that no character is escaped more than twice, however long the body.
  let size = 2;
  for (let at = 0; at < body.length; at += CHUNK) {
    size += Buffer.byteLength(quoted(body.slice(at, at + CHUNK))) - 2;
    if (size > room - LONGEST_MARK_BYTES) return cut(body, at);
  }
  return body;
}

/** With a mark at its end that says how much there was, even where some had been cut before. */
function cut(body: string, mostCharacters: number): string {
  if (body.length <= mostCharacters) return body;
  const marked = MARKED.exec(body.slice(-LONGEST_MARK_BYTES));
  const wholeBytes = marked?.[1] ?? String(Buffer.byteLength(body));
  const textLength = body.length - (marked?.[0].length ?? 0);
  const kept = body.slice(0, Math.min(mostCharacters, textLength)).replace(/[\ud800-\udbff]$/, '');
  return `${kept}…[cut: ${Buffer.byteLength(kept)} of ${wholeBytes} bytes]`;
}
