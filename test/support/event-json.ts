/** Events as the backends of vendors receive them: with the daemon's form of IDs, and given times. */
import { randomUUID } from 'node:crypto';
import type { Delivery } from '../../daemon/dispatcher/backends/backend.js';
import type { ChangeEventJson, EventJson, RequestEventJson } from '../../daemon/store/event-json.js';
import { eventOf } from './events.js';

export const PROJECT_ID = '0197f2b0-0000-7000-8000-0000000000aa';
export const TOKEN_ID = '0197f2b0-0000-7000-8000-0000000000bb';

const NAMES = { project_name: 'web', token_name: 'nightly tests' };
const whose = {
  time: '2026-11-22T06:00:02.500Z',
  instance: 'proxy-1',
  project_id: PROJECT_ID,
  token_id: TOKEN_ID,
  ...NAMES,
};

/** Its version is 7; the rest is random. */
const eventId = () => randomUUID().replace(/^(.{14})./, '$17');

/** A successful chat completion, without its bodies. */
export const requestEvent = (more: Partial<RequestEventJson> = {}): RequestEventJson =>
  eventOf(eventId(), {
    ...whose,
    request_id: 'req-1',
    upstream_request_id: 'req_upstream_1',
    duration_ms: 1500,
    upstream_ms: 1490,
    first_byte_ms: 1495,
    model: 'gpt-test',
    usage: { ...NO_USAGE, prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, source: 'provider' },
    cost_usd: '0.000345',
    ...more,
  });

export const NO_USAGE = {
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  source: 'missing',
  cache_read_tokens: null,
  cache_write_tokens: null,
} as const;

export const changeEvent = (more: Partial<ChangeEventJson> = {}): ChangeEventJson => ({
  schema: 1,
  id: eventId(),
  ...whose,
  kind: 'token.revoked',
  request_id: 'req-2',
  actor: 'management-token',
  user: null,
  count: 1,
  ...more,
});

export const deliveriesOf = (...events: EventJson[]): Delivery[] =>
  events.map((event) => ({ event, json: JSON.stringify(event) }));
