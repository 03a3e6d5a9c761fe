/** JSON shape of events, as stored in the stream and delivered to the dispatcher's back ends. */
import type { BudgetEvent, BudgetEventKind, ChangeEventKind, Outcome } from '../core/events.js';

interface EventBase {
  schema: 1;
  /** UUIDv7. A repeated delivery has the same ID. */
  id: string;
  /** RFC 3339, UTC. */
  time: string;
  /** The daemon that published it. */
  instance: string;
  project_id: string | null;
  token_id: string | null;
  /** The names when the event occurred. */
  project_name: string | null;
  token_name: string | null;
}

export interface UsageJson {
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  source: 'provider' | 'missing';
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
}

export interface RequestEventJson extends EventBase {
  kind: 'request.completed';
  request_id: string;
  method: string;
  path: string;
  status: number;
  code: string | null;
  /** Why llmp refused the request, in a sentence. */
  error: string | null;
  upstream_request_id: string | null;
  outcome: Outcome;
  cache: 'hit' | 'miss';
  duration_ms: number;
  upstream_ms: number | null;
  first_byte_ms: number | null;
  bytes_in: number;
  bytes_out: number;
  streamed: boolean;
  model: string | null;
  usage: UsageJson;
  /** A decimal number; null if the request ran a model and its cost is unknown. */
  cost_usd: string | null;
  /** Null unless bodies are captured. A truncated body ends with `…[cut: N of M bytes]`. */
  request_body: string | null;
  response_body: string | null;
}

export interface ChangeEventJson extends EventBase {
  kind: ChangeEventKind;
  request_id: string | null;
  actor: string;
  /** As reported by the front end. */
  user: string | null;
  /** How many tokens or stored responses were affected, for changes that can affect several. */
  count: number | null;
}

export interface BudgetEventJson extends Omit<ChangeEventJson, 'kind'> {
  kind: BudgetEventKind;
  /** Amounts of money are decimal strings in USD. */
  budget: Omit<BudgetEvent['budget'], 'limit' | 'used'> & { limit: string | number; used: string | number };
}

export type EventJson = RequestEventJson | ChangeEventJson | BudgetEventJson;
