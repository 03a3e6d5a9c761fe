import * as z from 'zod';
import {
  ALL_FAILURES,
  BUDGET_EVENT_KINDS,
  BUDGET_MODES,
  BUDGET_OWNERS,
  BUDGET_PERIODS,
  BUDGET_THRESHOLDS,
  BUDGET_UNITS,
  CHANGE_EVENT_KINDS,
  ERROR_CODE_PATTERN,
  EVENT_KINDS,
  MODEL_PART_PATTERN,
  REQUEST_EVENT_KIND,
  REQUEST_OUTCOMES,
} from '../vocabulary.js';
import {
  about,
  boolean,
  count,
  EXAMPLE_IDS,
  id,
  measure,
  nullable,
  oneOf,
  paging,
  selection,
  statuses,
  string,
  timeAgo,
  timestamp,
  took,
  uuid,
} from './fields.js';

const eventFilters = {
  project_id: about(id, 'Only events of this project.').optional(),
  token_id: about(id, 'Only events of this token.').optional(),
  kind: about(oneOf(EVENT_KINDS), 'Only events of this kind.').optional(),
  // Changes have none of these.
  status: about(statuses, 'Only requests with these statuses, and no changes.').optional(),
  code: about(
    selection(ERROR_CODE_PATTERN, 20, 'the `code` of an error'),
    'Only requests that llmp refused with these codes, and no changes.',
  ).optional(),
  outcome: about(
    selection(`(?:${REQUEST_OUTCOMES.join('|')})`, REQUEST_OUTCOMES.length, `one of ${REQUEST_OUTCOMES.join(', ')}`),
    `Only requests with these outcomes, and no changes. \`${ALL_FAILURES}\` means all failures.`,
  ).optional(),
  model: about(
    selection(MODEL_PART_PATTERN, 20, 'a part of the name of a model'),
    'Only requests whose model contains one of these texts, and no changes. Case-insensitive.',
  ).optional(),
  took_over: about(took, 'Only requests that took longer than this, and no changes.').optional(),
};

export const eventStreamQuery = z.strictObject({
  ...eventFilters,
  since: about(
    timeAgo,
    'Begins with the stored events since this time; new events follow without a gap. Ignored if the request has `Last-Event-ID`.',
  ).optional(),
});

export const eventQuery = z.strictObject({
  ...paging,
  ...eventFilters,
  since: about(timeAgo, 'Start of the period (inclusive). Must not be after `until`.').optional(),
  until: about(timeAgo, 'End of the period (exclusive).').optional(),
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
  project_name: nullable(string('Name of the project concerned when the event occurred, or null.')),
  token_name: nullable(string('Name of the token concerned; null if there is none, or it has no name.')),
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
    code: nullable(
      string(
        'The error `code` if llmp refused the request; with the outcome `provider_error` the code of the provider; otherwise null.',
      ),
    ),
    error: nullable(string('Why llmp refused the request, in a sentence; null if it did not.')),
    upstream_request_id: nullable(string('Request ID that the upstream assigned, or null.')),
    outcome: z
      .enum(REQUEST_OUTCOMES)
      .describe(
        'How the request ended. `refused`: llmp refused it. `upstream_refused`: the upstream responded with a status of 400 to 499. `upstream_error`: the upstream responded with 500 or above, or not at all. `provider_error`: the upstream reported an error within a response that had begun well.',
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
        cache_read_tokens: modelTokens('Number of prompt tokens that the provider read from its prompt cache'),
        cache_write_tokens: modelTokens('Number of prompt tokens that the provider wrote to its prompt cache'),
      })
      .describe('Token counts of the provider.'),
    cost_usd: nullable(
      string(
        'What the request cost by the prices in force when it was served: US dollars, as a decimal number. `0.00` if it was free; null if it ran a model and its cost is unknown.',
      ),
    ),
    request_body: nullable(string('Start of the request body if body capture is on, otherwise null.')),
    response_body: nullable(string('Start of the response body if body capture is on, otherwise null.')),
  })
  .describe('A completed request on /v1.');

const changeBase = {
  request_id: nullable(string('ID of the request that made the change, or null.')),
  actor: string('Who made the change, as in the audit log.'),
  user: nullable(
    string('The user of the front end, as reported by the front end; not verified. Null if it reported none.'),
  ),
};

export const changeEvent = z
  .strictObject({
    ...eventBase,
    kind: z.enum(CHANGE_EVENT_KINDS).describe('Kind of the event.'),
    ...changeBase,
    count: nullable(count('Number of tokens or responses concerned; null for a single one.')),
  })
  .describe('A change made through the management API.');

const amount = (what: string) =>
  z.union([string('US dollars, as a decimal number.'), count('Model tokens.')]).describe(what);

export const budgetEvent = z
  .strictObject({
    ...eventBase,
    kind: z.enum(BUDGET_EVENT_KINDS).describe('Kind of the event.'),
    ...changeBase,
    count: nullable(
      count('`budget.would_refuse`: number of requests since the previous event, including this one; otherwise null.'),
    ),
    budget: z
      .strictObject({
        owner: z.enum(BUDGET_OWNERS).describe('Whose budget it is: that of the token or of the project.'),
        mode: z.enum(BUDGET_MODES).describe('What happens at the limit.'),
        period: z.enum(BUDGET_PERIODS).describe('When the budget resets.'),
        unit: z.enum(BUDGET_UNITS).describe('The unit of the amounts.'),
        limit: amount('The limit.'),
        used: amount('What is used in the current period.'),
        percent: nullable(
          z
            .int()
            .min(1)
            .max(100)
            .describe(`\`budget.threshold\`: the share that is used, ${BUDGET_THRESHOLDS.join(' or ')}.`),
        ),
      })
      .describe('The budget.'),
  })
  .describe('A threshold of a budget is reached, or a `shadow` budget would have refused a request.');

export const event = z
  .discriminatedUnion('kind', [requestEvent, changeEvent, budgetEvent])
  .describe('A completed request, a change, or an event of a budget, depending on `kind`.');

export const eventExample: z.input<typeof event> = {
  schema: 1,
  id: '0197f2b0-5d1e-7c3a-8b4f-2a6d9e0c1b37',
  kind: REQUEST_EVENT_KIND,
  time: '2030-01-31T12:00:00.000Z',
  request_id: 'f2b1c0d9-8e7a-4b6c-9d5e-4f3a2b1c0d9e',
  instance: 'proxy-1',
  project_id: EXAMPLE_IDS.project,
  token_id: EXAMPLE_IDS.token,
  project_name: 'Checkout',
  token_name: 'nightly tests',
  method: 'POST',
  path: '/v1/chat/completions',
  status: 429,
  code: 'request_limit_reached',
  error: 'token request limit reached: ask for another token',
  upstream_request_id: null,
  outcome: 'refused',
  cache: 'miss',
  duration_ms: 0.42,
  upstream_ms: null,
  first_byte_ms: 0.4,
  bytes_in: 0,
  bytes_out: 112,
  streamed: false,
  model: null,
  usage: {
    prompt_tokens: null,
    completion_tokens: null,
    total_tokens: null,
    source: 'missing',
    cache_read_tokens: null,
    cache_write_tokens: null,
  },
  cost_usd: '0.00',
  request_body: null,
  response_body: null,
};
