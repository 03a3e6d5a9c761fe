/** What the stand-in of a provider needs to know of its API. */
import type { ServerResponse } from 'node:http';

/** A request, as far as responses depend on it. */
export interface Asked {
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  tools?: unknown[];
  generate?: boolean;
  encoding_format?: string;
  /** By default a call of the tool `weather` if there are tools, or the text of these files. */
  reply?: Reply;
}

/** What the model says: text, or a call of one tool. */
export type Reply = { text: string } | { tool: string; input: object };

export interface Failure {
  status: number;
  type: string;
  code: string | null;
  message: string;
}

export interface Dialect {
  /** @param path without query. */
  respond(res: ServerResponse, path: string, asked: Asked): void;
  /** The body of an error. */
  failure(failure: Failure): object;
  /** The beginning of an event stream. */
  firstEvents: string;
}

/** The pieces of the text that is streamed. */
export const PIECES = ['Hel', 'lo ', 'wörld'];
export const TEXT = 'Hello there';
export const TOOL_INPUT = { city: 'Wörgl' };

/** The reply in one piece. */
export const replyTo = ({ reply, tools }: Asked): Reply =>
  reply ?? (tools ? { tool: 'weather', input: TOOL_INPUT } : { text: TEXT });

/** The reply as it is streamed: the pieces of its text, or a call of one tool. */
export function streamedReplyTo({ reply }: Asked): { pieces: readonly string[] } | { tool: string; input: object } {
  if (reply === undefined) return { pieces: PIECES };
  return 'text' in reply ? { pieces: halves(reply.text) } : reply;
}

export const halves = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

/** Exact in 32 bits, too. */
export const VECTOR = [0.5, -0.25, 0.125];

export function sendEvents(res: ServerResponse, events: readonly string[]): void {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  res.end(events.join(''));
}
