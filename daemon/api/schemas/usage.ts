import * as z from 'zod';
import { USAGE_DIMENSIONS } from '../vocabulary.js';
import { about, count, id, nullable, string, timeAgo, timestamp, uuid } from './fields.js';

const DIMENSION = `(?:${USAGE_DIMENSIONS.join('|')})`;

export const usageQuery = z.strictObject({
  by: about(
    z
      .string()
      .regex(new RegExp(`^${DIMENSION}(?:,${DIMENSION}){0,${USAGE_DIMENSIONS.length - 1}}$`))
      .describe('any of token, project, model, hour and day, with commas between'),
    'What the answer has a line for each of. Without it, one line for everything.',
  ).optional(),
  since: about(
    timeAgo,
    'Where the report begins; goes back to the beginning of its hour. Seven days before `until` unless given; not after `until`.',
  ).optional(),
  until: about(timeAgo, 'Where the report ends; goes on to the end of its hour. Now unless given.').optional(),
  project_id: about(id, 'Counts requests of this project only.').optional(),
  token_id: about(id, 'Counts requests of this token only.').optional(),
});

// What was asked for by is there, the rest is not.
export const usageLine = z
  .strictObject({
    token_id: nullable(uuid('The token, with `by=token`; null for requests whose token is not known.')).optional(),
    project_id: nullable(
      uuid('The project, with `by=project`; null for requests whose project is not known.'),
    ).optional(),
    model: nullable(
      string(
        'The model, with `by=model`; null if none was named. Of each day, 500 models that gave an answer and 100 that gave none are told apart; all others are `other`.',
      ),
    ).optional(),
    hour: timestamp('When the hour begins, with `by=hour`.').optional(),
    day: timestamp('When the day begins in UTC, with `by=day`.').optional(),
    requests: count('How many requests ended.'),
    hits: count('How many of them were answered from the cache.'),
    refused: count(
      'How many of them llmp refused. Those that the upstream refused, or a revocation cut, are not part of it.',
    ),
    errors: count('How many of them the upstream did not answer, or not whole, or with a status of 500 or above.'),
    upstream_refused: count(
      'How many of them the upstream answered with a status of 400 to 499, such as its own rate limit.',
    ),
    upstream_errors: count('How many of the errors were the upstream: a status of 500 or above, or no answer at all.'),
    cut: count(
      'How many of them a revocation cut after they were forwarded, or while they were answered from the cache.',
    ),
    prompt_tokens: count('How many tokens their prompts had, as far as the provider said so.'),
    completion_tokens: count('How many tokens their completions had, as far as the provider said so.'),
  })
  .describe('What requests add up to.');
