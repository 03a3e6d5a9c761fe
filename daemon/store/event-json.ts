/** Events as they lie in the stream and reach the back ends. */
import type { ChangeEventKind, Outcome } from '../core/events.js';

interface EventBase {
  schema: 1;
  /** A UUIDv7. A delivery that is repeated repeats it. */
  id: string;
  /** RFC 3339, UTC. */
  time: string;
  /** Of the daemon that published it. */
  instance: string;
  project_id: string | null;
  token_id: string | null;
}

export interface UsageJson {
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  source: 'provider' | 'missing';
}

export interface RequestEventJson extends EventBase {
  kind: 'request.completed';
  request_id: string;
  method: string;
  path: string;
  status: number;
  code: string | null;
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
  /** Text, only where bodies are captured. A cut one ends with `…[cut: N of M bytes]`. */
  request_body: string | null;
  response_body: string | null;
}

export interface ChangeEventJson extends EventBase {
  kind: ChangeEventKind;
  request_id: string | null;
  actor: string;
  /** How many tokens or answers it was about, where it may be several. */
  count: number | null;
}

export type EventJson = RequestEventJson | ChangeEventJson;
