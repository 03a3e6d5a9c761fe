/** What stands in a line behind its link: the fields of a record, as the management API names them. */
import type { CommittedRecord } from '../../core/ports.js';
import type { RequestEnded } from '../../core/events.js';
import { auditOutcomeOf } from '../../core/use-record.js';

// What would drive a terminal, or turn the line around, for whoever reads the file there. JSON quotes the others itself.
const DRIVING = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const escaped = (text: string) =>
  text.replace(DRIVING, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);

/**
 * A JSON object without its first brace. `seq` is its place among all records. `audit verify` compares the lines of all releases with
 * it: what it makes of a record that is there today must never change.
 */
export function fieldsOfRecord(record: CommittedRecord): string {
  const shown = {
    seq: record.seq,
    id: record.id,
    time: new Date(record.timeMs).toISOString(),
    action: record.action,
    actor: record.actor,
    outcome: record.outcome,
    project_id: record.projectId,
    token_id: record.tokenId,
    obfuscated: record.obfuscated,
    request_id: record.requestId,
    client_ip: record.clientIp,
    reason: record.reason,
    count: record.count,
    details: record.details,
  };
  return escaped(JSON.stringify(shown)).slice(1);
}

/** So much of a request that is over stands in its line. */
export type AuditedUse = Pick<
  RequestEnded,
  | 'requestId'
  | 'timeMs'
  | 'projectId'
  | 'tokenId'
  | 'obfuscated'
  | 'clientIp'
  | 'method'
  | 'path'
  | 'status'
  | 'code'
  | 'outcome'
  | 'cache'
  | 'durationMs'
  | 'model'
  | 'usage'
>;

const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/** ASCII throughout, so that a line is as many bytes as characters. */
function json(text: string | null): string {
  if (text === null) return 'null';
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const MOST_TOKENS = 10_000;

/**
 * Makes the fields of the lines of uses. By hand, for there is one for each request: what says the same of every use of a
 * token, and of every moment, is made once.
 */
export class UseFields {
  readonly #ofToken = new Map<string, string>();
  #timeMs = NaN;
  #time = '';

  /** A request whose token is known. */
  of(use: AuditedUse): string {
    const { method, path, status, code, outcome, cache, model, usage } = use;
    const counts = usage
      ? `{"prompt_tokens":${usage.promptTokens},"completion_tokens":${usage.completionTokens},"total_tokens":${usage.totalTokens}}`
      : 'null';
    return (
      `"id":${json(use.requestId)},"time":"${this.#iso(use.timeMs)}","action":"token.use","actor":"token",` +
      `"outcome":"${auditOutcomeOf(outcome)}",${this.#subject(use)},"request_id":${json(use.requestId)},` +
      `"client_ip":${json(use.clientIp)},"reason":null,"count":null,"details":{"method":${json(method)},` +
      `"path":${json(path)},"status":${status},"code":${json(code)},"outcome":"${outcome}","cache":"${cache}",` +
      `"model":${json(model)},"duration_ms":${Math.round(use.durationMs * 1000) / 1000},"usage":${counts}}}`
    );
  }

  /** Requests of a minute whose token nobody knows, as they were refused. */
  ofUnknown(code: string | null, count: number, timeMs: number): string {
    return (
      `"id":null,"time":"${this.#iso(timeMs)}","action":"token.use","actor":"token","outcome":"denied",` +
      `"project_id":null,"token_id":null,"obfuscated":null,"request_id":null,"client_ip":null,"reason":null,` +
      `"count":${count},"details":{"code":${json(code)}}}`
    );
  }

  #subject({ tokenId, projectId, obfuscated }: AuditedUse): string {
    const known = this.#ofToken.get(tokenId ?? '');
    if (known !== undefined) return known;
    if (this.#ofToken.size >= MOST_TOKENS) this.#ofToken.clear();
    const made = `"project_id":${json(projectId)},"token_id":${json(tokenId)},"obfuscated":${json(obfuscated)}`;
    this.#ofToken.set(tokenId ?? '', made);
    return made;
  }

  #iso(ms: number): string {
    if (ms !== this.#timeMs) {
      this.#timeMs = ms;
      this.#time = new Date(ms).toISOString();
    }
    return this.#time;
  }
}
