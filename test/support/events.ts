/** Events as the daemon publishes them. */
import type { Redis } from 'ioredis';
import type { RequestEventJson } from '../../daemon/store/event-json.js';

export const STREAM = 'llmp:events';
export const GROUP = 'llmp-dispatchers';
export const DEAD = 'llmp:events:dead';

export const eventOf = (id: string, more: Partial<RequestEventJson> = {}): RequestEventJson => ({
  schema: 1,
  id,
  kind: 'request.completed',
  time: '2026-01-02T03:04:05.678Z',
  request_id: `request-${id}`,
  instance: 'test',
  project_id: 'project',
  token_id: 'token',
  project_name: 'web',
  token_name: null,
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  code: null,
  error: null,
  upstream_request_id: null,
  outcome: 'ok',
  cache: 'miss',
  duration_ms: 12,
  upstream_ms: 10,
  first_byte_ms: 11,
  bytes_in: 100,
  bytes_out: 200,
  streamed: false,
  model: 'gpt-4o-mini',
  usage: {
    ...{ prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, source: 'provider' },
    ...{ cache_read_tokens: null, cache_write_tokens: null },
  },
  cost_usd: '0.00',
  request_body: null,
  response_body: null,
  ...more,
});

/** Publishes events with these IDs, as the daemon does. */
export async function publish(
  redis: Redis,
  ids: readonly string[],
  more: Partial<RequestEventJson> = {},
): Promise<void> {
  const batch = redis.pipeline();
  for (const id of ids) batch.xadd(STREAM, '*', 'event', JSON.stringify(eventOf(id, more)));
  for (const [error] of (await batch.exec()) ?? []) if (error) throw error;
}

/** `count` IDs such as `a-0001`. */
export const idsOf = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${String(index + 1).padStart(4, '0')}`);
