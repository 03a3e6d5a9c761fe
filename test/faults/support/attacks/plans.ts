/** What the processes of an attack are told and what they report. All of it is JSON. */

/** How a stand-in provider treats its connections. Bytes are in latin1. */
export interface ProviderPlan {
  /** What it sends as soon as the head of a request has arrived; none: it never answers. A request to upgrade gets a 101 first. */
  response?: string;
  /** A body for `response` that is not text, in base64. */
  bodyBase64?: string;
  /** Sent after `response` again and again, as fast as the other side reads it. */
  block?: string;
  /** The most that it sends of the block on each connection. */
  bytesPerSecond?: number;
  /** The number of connections at a time, if it sends at that rate. */
  connections?: number;
  /** Whether it reads on after the head of the first request. If not, it answers only one request. */
  reads: boolean;
  delayMs?: number;
}

export interface ProviderReport {
  /** The number of heads of requests that have arrived. */
  requests: number;
  sentBytes: number;
}

/** What all connections of an attack do. Bytes are in latin1; `{{n}}` is the number of the connection, `{{pair}}` half of it. */
export interface AttackerPlan {
  connections: number;
  head: string;
  /** Sent after the head again and again, as fast as the daemon reads it. */
  block?: string;
  /** The most that each connection sends of it. */
  bytesPerSecond?: number;
  /** Sends the block in writes of one byte, each a segment of its own. */
  inSegments?: boolean;
  /** Whether it waits for a 101 before it sends the block. */
  upgrades?: boolean;
  reads: 'all' | 'none' | 'every second connection';
  /** Whether it connects again after its connection has ended. */
  returns?: boolean;
  /** Whether it ends its connection as soon as it has an answer, instead of sending on until the daemon ends it. */
  leavesOnAnswer?: boolean;
  /** Requests in all: each connection sends its head again when it has its complete answer. */
  requests?: number;
}

export interface AttackerReport {
  opened: number;
  /** Connections that the daemon still serves, whether or not the attacker reads them. */
  held: number;
  /** How connections ended: `closed` and `reset` by the daemon, `left` by the attacker itself, `refused` at connecting. */
  ended: Record<string, number>;
  /** The first status of each connection that reads, or of each answer. */
  statuses: Record<string, number>;
  sentBytes: number;
  receivedBytes: number;
}

/** A request of the steady client. Times are in ms; `atMs` is wall-clock time. */
export interface SteadyRequest {
  atMs: number;
  tookMs: number;
  /** 0: no response. */
  status: number;
}

export interface SteadyPlan {
  url: string;
  secret: string;
  perSecond: number;
}

export interface SteadyReport {
  requests: SteadyRequest[];
}
