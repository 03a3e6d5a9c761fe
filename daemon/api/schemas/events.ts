import * as z from 'zod';
import { CHANGE_EVENT_KINDS, EVENT_KINDS, REQUEST_EVENT_KIND, REQUEST_OUTCOMES } from '../vocabulary.js';
import { about, boolean, count, id, measure, nullable, oneOf, statuses, string, timestamp, uuid } from './fields.js';

export const eventQuery = z.strictObject({
  project_id: about(id, 'Only events of this project.').optional(),
  token_id: about(id, 'Only events of this token.').optional(),
  // Only requests have a status.
  status: about(statuses, 'Only requests with these statuses, and no changes.').optional(),
  kind: about(oneOf(EVENT_KINDS), 'Only events of this kind.').optional(),
});

const eventBase = {
  schema: z.literal(1).meta({ type: 'integer' }).describe('Version of the event format.'),
  id: z
    .uuidv7()
    .meta({ pattern: undefined })
    .describe('ID of the event. It stays the same if the event is delivered again.'),
  time: timestamp('Time of the event.'),
  instance: string('Name of the instance on which the event occurred.'),
  project_id: nullable(uuid('ID of the project concerned; null if there is none or it is unknown.')),
  token_id: nullable(uuid('ID of the token concerned; null if there is none or it is unknown.')),
};

const modelTokens = (what: string) => nullable(count(`${what}; null if the provider did not report it.`));

export const requestEvent = z
  .strictObject({
    ...eventBase,
    kind: z.literal(REQUEST_EVENT_KIND).describe('Kind of the event.'),
    request_id: string('ID of the request (`X-Request-ID`).'),
    method: string('Method of the request.'),
    path: string('Path of the request, without the query.'),
    status: z
      .int()
      .min(100)
      .max(999)
      .describe('Status code of the response; 499 if the client disconnected before one was sent.'),
    code: nullable(string('The error `code` if llmp refused the request, otherwise null.')),
    upstream_request_id: nullable(string('Request ID that the upstream assigned, or null.')),
    outcome: z
      .enum(REQUEST_OUTCOMES)
      .describe(
        'How the request ended. `refused`: llmp refused it. `upstream_refused`: the upstream responded with a status of 400 to 499. `upstream_error`: the upstream responded with 500 or above, or not at all.',
      ),
    cache: z.enum(['hit', 'miss']).describe('Whether the response came from the cache.'),
    duration_ms: measure('Duration of the request, in milliseconds.'),
    upstream_ms: nullable(
      measure('Time until the response of the upstream started, in milliseconds; null if there was none.'),
    ),
    first_byte_ms: nullable(
      measure('Time until the response to the client started, in milliseconds; null if there was none.'),
    ),
    bytes_in: count('Size of the request body, in bytes.'),
    bytes_out: count('Size of the response body, in bytes.'),
    streamed: boolean('Whether the response was an event stream or a WebSocket.'),
    model: nullable(string('The model; null if neither the provider nor the client named one.')),
    usage: z
      .strictObject({
        prompt_tokens: modelTokens('Number of prompt tokens'),
        completion_tokens: modelTokens('Number of completion tokens'),
        total_tokens: modelTokens('Total number of tokens'),
        source: z.enum(['provider', 'missing']).describe('Where the counts come from.'),
      })
      .describe('Token counts of the provider.'),
    request_body: nullable(string('Start of the request body if body capture is on, otherwise null.')),
    response_body: nullable(string('Start of the response body if body capture is on, otherwise null.')),
  })
  .describe('A completed request on /v1.');

export const changeEvent = z
  .strictObject({
    ...eventBase,
    kind: z.enum(CHANGE_EVENT_KINDS).describe('Kind of the event.'),
    request_id: nullable(string('ID of the request that made the change, or null.')),
    actor: string('Who made the change, as in the audit log.'),
    count: nullable(count('Number of tokens or responses concerned; null for a single one.')),
  })
  .describe('A change made through the management API.');

export const event = z
  .discriminatedUnion('kind', [requestEvent, changeEvent])
  .describe('A completed request or a change, depending on `kind`.');
