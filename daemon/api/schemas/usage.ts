import * as z from 'zod';
import { USAGE_DIMENSIONS } from '../vocabulary.js';
import { cost } from './cost.js';
import { failures } from './failures.js';
import { about, count, id, nullable, string, timeAgo, timestamp, uuid } from './fields.js';

const DIMENSION = `(?:${USAGE_DIMENSIONS.join('|')})`;

export const usageQuery = z.strictObject({
  by: about(
    z
      .string()
      .regex(new RegExp(`^${DIMENSION}(?:,${DIMENSION}){0,${USAGE_DIMENSIONS.length - 1}}$`))
      .describe('any of token, project, model, hour and day, separated by commas'),
    'Dimensions of the report: one line for each combination of their values. Without it, the report has a single line.',
  ).optional(),
  since: about(
    timeAgo,
    'Start of the report, rounded down to the hour (default: seven days before `until`). Must not be after `until`.',
  ).optional(),
  until: about(timeAgo, 'End of the report, rounded up to the hour (default: now).').optional(),
  project_id: about(id, 'Only requests of this project.').optional(),
  token_id: about(id, 'Only requests of this token.').optional(),
});

// A line has only the dimensions that `by` names.
export const usageLine = z
  .strictObject({
    token_id: nullable(uuid('ID of the token, with `by=token`; null for requests with an unknown token.')).optional(),
    project_id: nullable(
      uuid('ID of the project, with `by=project`; null for requests with an unknown project.'),
    ).optional(),
    token_name: nullable(
      string('Name of the token, with `by=token`; null if it has no name, or the token is unknown.'),
    ).optional(),
    project_name: nullable(
      string('Current name of the project, with `by=project`; null if the project is unknown.'),
    ).optional(),
    model: nullable(
      string(
        'The model, with `by=model`; null if none was named. Per day, up to 500 models that responded and 100 that did not are reported by name, the others as `other`.',
      ),
    ).optional(),
    hour: timestamp('Start of the hour, with `by=hour`.').optional(),
    day: timestamp('Start of the day in UTC, with `by=day`.').optional(),
    requests: count('Number of completed requests.'),
    hits: count('Requests served from the cache.'),
    ...failures,
    prompt_tokens: count(
      'Prompt tokens, as reported by the provider. They include those that it read from its prompt cache or wrote to it.',
    ),
    completion_tokens: count('Completion tokens, as reported by the provider.'),
    cache_read_tokens: count('Prompt tokens that the provider read from its prompt cache.'),
    cache_write_tokens: count('Prompt tokens that the provider wrote to its prompt cache.'),
    ...cost,
  })
  .describe('Totals of the requests in one group.');
