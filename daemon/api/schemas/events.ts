import * as z from 'zod';
import { CHANGE_EVENT_KINDS, EVENT_KINDS, REQUEST_EVENT_KIND, REQUEST_OUTCOMES } from '../vocabulary.js';
import { about, boolean, count, id, measure, nullable, oneOf, statuses, string, timestamp, uuid } from './fields.js';

export const eventQuery = z.strictObject({
  project_id: about(id, 'Sends events of this project only.').optional(),
  token_id: about(id, 'Sends events of this token only.').optional(),
  // Nothing but a request has a status.
  status: about(statuses, 'Sends requests with these statuses only, and no other events.').optional(),
  kind: about(oneOf(EVENT_KINDS), 'Sends events of this kind only.').optional(),
});

const eventBase = {
  schema: z.literal(1).meta({ type: 'integer' }).describe('The version of this layout.'),
  id: z.uuidv7().meta({ pattern: undefined }).describe('The id of the event. An event that is sent twice has one id.'),
  time: timestamp('When it happened.'),
  instance: string('The instance on which it happened.'),
  project_id: nullable(uuid('The project it is about; null if it is about none, or none is known.')),
  token_id: nullable(uuid('The token it is about; null if it is about none, or none is known.')),
};

const modelTokens = (what: string) => nullable(count(`${what}; null if the provider did not say.`));

export const requestEvent = z
  .strictObject({
    ...eventBase,
    kind: z.literal(REQUEST_EVENT_KIND).describe('What happened.'),
    request_id: string('The id of the request: `X-Request-ID`.'),
    method: string("The request's method."),
    path: string("The request's path, without its query."),
    status: z
      .int()
      .min(100)
      .max(999)
      .describe('The status that was sent; 499 if the client left before there was one.'),
    code: nullable(string('The `code` of the error if llmp refused the request; otherwise null.')),
    upstream_request_id: nullable(string("The upstream's id of the request; null if it gave none.")),
    outcome: z
      .enum(REQUEST_OUTCOMES)
      .describe(
        'How the request ended. `refused` is by llmp; `upstream_refused` is an answer of 400 to 499 from the upstream, `upstream_error` one of 500 or above, or none.',
      ),
    cache: z.enum(['hit', 'miss']).describe('Whether it was answered from the cache.'),
    duration_ms: measure('How long the request took, in milliseconds.'),
    upstream_ms: nullable(
      measure('How long the upstream took until its answer began, in milliseconds; null if there was none.'),
    ),
    first_byte_ms: nullable(
      measure('How long it took until the answer to the client began, in milliseconds; null if none did.'),
    ),
    bytes_in: count("How long the request's body was."),
    bytes_out: count("How long the answer's body was."),
    streamed: boolean('Whether the answer was an event stream or a WebSocket.'),
    model: nullable(string('The model; null if neither the provider nor the client named one.')),
    usage: z
      .strictObject({
        prompt_tokens: modelTokens('How many tokens the prompt had'),
        completion_tokens: modelTokens('How many tokens the completion had'),
        total_tokens: modelTokens('How many tokens there were together'),
        source: z.enum(['provider', 'missing']).describe('Where these counts come from.'),
      })
      .describe("The provider's token counts."),
    request_body: nullable(string("The beginning of the request's body where bodies are captured; otherwise null.")),
    response_body: nullable(string("The beginning of the answer's body where bodies are captured; otherwise null.")),
  })
  .describe('A request on /v1 is over.');

export const changeEvent = z
  .strictObject({
    ...eventBase,
    kind: z.enum(CHANGE_EVENT_KINDS).describe('What happened.'),
    request_id: nullable(string('The id of the request that made the change; null if there was none.')),
    actor: string('Who made the change, as in the audit log.'),
    count: nullable(count('How many tokens or answers it was about; null for a single one.')),
  })
  .describe('Something was changed through the management API.');

export const event = z
  .discriminatedUnion('kind', [requestEvent, changeEvent])
  .describe('Something that happened. `kind` says what.');
