import * as z from 'zod';
import { DEFAULT_TOP_ROWS, MAX_TOP_ROWS, TOP_DIMENSIONS, TOP_SORTS, TOP_WINDOWS } from '../vocabulary.js';
import { cost } from './cost.js';
import { failures } from './failures.js';
import { about, count, id, measure, nullable, oneOf, queryNumber, string, timestamp, uuid } from './fields.js';

export const topQuery = z.strictObject({
  by: about(
    oneOf(TOP_DIMENSIONS),
    'What the rows are. `model` has a row for each pair of model and project, `model_total` one for each model over all projects.',
  ).default('token'),
  window: about(oneOf(TOP_WINDOWS), 'The period, up to now.').default('1h'),
  sort: about(
    oneOf(TOP_SORTS),
    'Sort order, always descending. `errors` are failures, `tokens` are model tokens. With `cost`, requests whose cost is unknown count as 0.',
  ).default('errors'),
  project_id: about(id, 'Only requests of this project.').optional(),
  token_id: about(id, 'Only requests of this token.').optional(),
  limit: about(queryNumber(1, MAX_TOP_ROWS), 'Maximum number of rows.').default(DEFAULT_TOP_ROWS),
});

const figures = {
  requests: count('Number of completed requests.'),
  cache_hits: count('Requests served from the cache.'),
  ...failures,
  prompt_tokens: count('Prompt tokens, as reported by the provider.'),
  completion_tokens: count('Completion tokens, as reported by the provider.'),
  ...cost,
  p50_ms: nullable(
    measure('Median time until the response of the upstream started, in milliseconds; null if unknown. Approximate.'),
  ),
  p95_ms: nullable(
    measure(
      '95th percentile of the time until the response of the upstream started, in milliseconds; null if unknown. Approximate.',
    ),
  ),
};

const histories = {
  history: z
    .array(z.int().min(0))
    .describe('Number of requests in each step of `step_seconds`, oldest first. The last step is not over yet.'),
  error_history: z.array(z.int().min(0)).describe('Number of failures in each of these steps.'),
};

export const topRow = z
  .strictObject({
    token_id: uuid('ID of the token, with `by=token`.').optional(),
    token_name: nullable(string('Name of the token, with `by=token`; null if it has none.')).optional(),
    project_id: uuid('ID of the project; absent with `by=model_total`.').optional(),
    project_name: nullable(string('Current name of the project; null if it is unknown.')).optional(),
    model: nullable(
      string(
        'The model, with `by=model` and `by=model_total`; null if unknown. Rare models are `other`, as in the usage report.',
      ),
    ).optional(),
    ...figures,
    last_used_at: timestamp(
      'When the token or project was last used, or the start of the minute (in a window of 24 hours: the hour) of the last request, if that is later or the row is a model.',
    ),
    ...histories,
  })
  .describe('A token, a project, a model of a project, or a model over all projects.');

export const top = z
  .strictObject({
    by: z.enum(TOP_DIMENSIONS).describe('What the rows are.'),
    window: z.enum(TOP_WINDOWS).describe('The period that was asked for.'),
    sort: z.enum(TOP_SORTS).describe('The sort order.'),
    from: timestamp('Start of the period that the figures cover.'),
    to: timestamp('End of the period: when the figures were read.'),
    step_seconds: count('Length of a step of the histories, in seconds.'),
    row_count: count('Number of rows that there would be without `limit`.'),
    total: z
      .strictObject({ ...figures, ...histories })
      .describe('Figures of all requests, including those with an unknown token.'),
    rows: z.array(topRow).describe('The rows, in the order of `sort`.'),
  })
  .describe('Figures of the busiest or most failing tokens, projects or models.');
