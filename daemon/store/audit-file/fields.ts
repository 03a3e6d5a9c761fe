/** The fields of an audit line after its link, named as in the management API. */
import { usdOf } from '../../api/money.js';
import type { NumberedRecord } from '../../core/ports.js';
import type { RequestEnded } from '../../core/events.js';
import { auditOutcomeOf } from '../../core/use-record.js';
import { withoutLink } from './chain.js';

// Characters that control a terminal or reverse the text direction when the file is displayed. JSON itself escapes the other
// control characters.
const CONTROLS = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const escaped = (text: string) =>
  text.replace(CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);

/**
 * A JSON object without its opening brace. `seq` is the record's sequence number. `audit verify` compares lines written by all
 * releases with this text, so the output for an existing record must never change: a record without a user or a batch has no such field.
 */
export function fieldsOfRecord(record: NumberedRecord): string {
  const shown = {
    seq: record.seq,
    id: record.id,
    time: new Date(record.timeMs).toISOString(),
    action: record.action,
    actor: record.actor,
    ...(record.user !== null && { user: record.user }),
    outcome: record.outcome,
    project_id: record.projectId,
    token_id: record.tokenId,
    obfuscated: record.obfuscated,
    request_id: record.requestId,
    client_ip: record.clientIp,
    reason: record.reason,
    count: record.count,
    details: record.details,
    ...(record.batch !== null && { batch: record.batch }),
    ...(record.undoOf !== null && { undo_of: record.undoOf }),
  };
  return escaped(JSON.stringify(shown)).slice(1);
}

/** What a line without a record says: that the file or the database was not as expected. */
export type MarkerAction = 'audit.file_replaced' | 'audit.file_cut' | 'audit.database_behind';

const MARKER_ACTIONS: ReadonlySet<unknown> = new Set<MarkerAction>([
  'audit.file_replaced',
  'audit.file_cut',
  'audit.database_behind',
]);

/** Such a line has the fields of a record, without an ID. */
export interface Marker {
  action: MarkerAction;
  /** The last record before the point where the copy continues. Null in the use log. */
  seq: number | null;
  timeMs: number;
  details: Record<string, number>;
}

/** A JSON object without its opening brace. */
export function fieldsOfMarker({ action, seq, timeMs, details }: Marker): string {
  const shown = {
    ...(seq !== null && { seq }),
    id: null,
    time: new Date(timeMs).toISOString(),
    action,
    actor: 'system',
    outcome: 'error',
    project_id: null,
    token_id: null,
    obfuscated: null,
    request_id: null,
    client_ip: null,
    reason: null,
    count: null,
    details,
  };
  return JSON.stringify(shown).slice(1);
}

/** A line of the file of changes. */
export interface RecordLine {
  /** Of the record, or of the last record before a marker; -1 if the line has none. */
  seq: number;
  isMarker: boolean;
  /** A JSON object without its opening brace and its link. */
  fields: string;
}

/** @returns null for a line that is incomplete after a crash, and for a marker in a file without records. */
export function recordLineOf(bytes: Buffer): RecordLine | null {
  const text = bytes.toString();
  try {
    const { seq, id, action } = JSON.parse(text) as Record<string, unknown>;
    const isMarker = id === null && MARKER_ACTIONS.has(action);
    if (seq === undefined && isMarker) return null;
    return { seq: Number.isSafeInteger(seq) ? (seq as number) : -1, isMarker, fields: withoutLink(text) };
  } catch {
    return null;
  }
}

/** The parts of a completed request that its line contains. */
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
  | 'costNano'
>;

const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/** ASCII only, so that a line has as many bytes as characters. */
function json(text: string | null): string {
  if (text === null) return 'null';
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const MAX_TOKENS = 10_000;

/** What is in one part: the next request often has the same. */
type Subject = Pick<AuditedUse, 'tokenId' | 'outcome'>;
type Request = Pick<AuditedUse, 'clientIp' | 'method' | 'path' | 'status' | 'code' | 'outcome' | 'cache' | 'model'>;

/** The last part that was composed. */
interface Repeated<T> {
  of: T;
  text: string;
}

/**
 * Formats the lines of uses. Built by hand, because there is one for each request; the parts that repeat for a token, a moment or one
 * request after another are cached.
 */
export class UseFields {
  readonly #ofToken = new Map<string, string>();
  #second = NaN;
  /** The time of that second, up to its milliseconds. */
  #upToMs = '';
  readonly #parts: string[] = [];
  #subject: Repeated<Subject> | null = null;
  #request: Repeated<Request> | null = null;

  /**
   * For a request with a known token. @returns the parts of the text, valid until the next call. As one text, it would be copied once
   * more.
   */
  of(use: AuditedUse): readonly string[] {
    const id = json(use.requestId);
    const durationMs = Math.round(use.durationMs * 1000) / 1000;
    const parts = this.#parts;
    parts[0] = `"id":${id},"time":"${this.#iso(use.timeMs)}",`;
    parts[1] = this.#subjectOf(use);
    parts[2] = id;
    parts[3] = this.#requestOf(use);
    parts[4] = `${durationMs},"usage":${countsOf(use)},"cost_usd":${costOf(use)}}}`;
    return parts;
  }

  /** From the action up to the request's ID. */
  #subjectOf(use: AuditedUse): string {
    const last = this.#subject;
    if (last?.of.tokenId === use.tokenId && last.of.outcome === use.outcome) return last.text;
    const outcome = auditOutcomeOf(use.outcome);
    const text = `"action":"token.use","actor":"token","outcome":"${outcome}",${this.#tokenOf(use)},"request_id":`;
    // Not the whole event, which may have bodies.
    this.#subject = { of: { tokenId: use.tokenId, outcome: use.outcome }, text };
    return text;
  }

  /** From after the request's ID up to the duration. */
  #requestOf(use: AuditedUse): string {
    const last = this.#request;
    if (last && isSameRequest(last.of, use)) return last.text;
    const { clientIp, method, path, status, code, outcome, cache, model } = use;
    const text =
      `,"client_ip":${json(clientIp)},"reason":null,"count":null,"details":{"method":${json(method)},` +
      `"path":${json(path)},"status":${status},"code":${json(code)},"outcome":"${outcome}","cache":"${cache}",` +
      `"model":${json(model)},"duration_ms":`;
    this.#request = { of: { clientIp, method, path, status, code, outcome, cache, model }, text };
    return text;
  }

  /** For the refused requests of one minute whose token is unknown. */
  ofUnknown(code: string | null, count: number, timeMs: number): readonly string[] {
    return [
      `"id":null,"time":"${this.#iso(timeMs)}","action":"token.use","actor":"token","outcome":"denied",` +
        `"project_id":null,"token_id":null,"obfuscated":null,"request_id":null,"client_ip":null,"reason":null,` +
        `"count":${count},"details":{"code":${json(code)}}}`,
    ];
  }

  #tokenOf({ tokenId, projectId, obfuscated }: AuditedUse): string {
    const known = this.#ofToken.get(tokenId ?? '');
    if (known !== undefined) return known;
    if (this.#ofToken.size >= MAX_TOKENS) this.#ofToken.clear();
    const made = `"project_id":${json(projectId)},"token_id":${json(tokenId)},"obfuscated":${json(obfuscated)}`;
    this.#ofToken.set(tokenId ?? '', made);
    return made;
  }

  #iso(ms: number): string {
    const second = Math.floor(ms / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#upToMs = new Date(second * 1_000).toISOString().slice(0, -4);
    }
    return `${this.#upToMs}${String(ms - second * 1_000).padStart(3, '0')}Z`;
  }
}

const isSameRequest = (a: Request, b: Request): boolean =>
  a.path === b.path &&
  a.model === b.model &&
  a.status === b.status &&
  a.outcome === b.outcome &&
  a.cache === b.cache &&
  a.code === b.code &&
  a.clientIp === b.clientIp &&
  a.method === b.method;

const costOf = ({ costNano: nano }: AuditedUse) => (nano === null ? 'null' : `"${usdOf(nano)}"`);

function countsOf({ usage }: AuditedUse): string {
  if (!usage) return 'null';
  return (
    `{"prompt_tokens":${usage.promptTokens},"completion_tokens":${usage.completionTokens},"total_tokens":${usage.totalTokens},` +
    `"cache_read_tokens":${usage.cacheReadTokens},"cache_write_tokens":${usage.cacheWriteTokens}}`
  );
}
