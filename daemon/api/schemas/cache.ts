import * as z from 'zod';
import { CACHE_BACKENDS } from '../vocabulary.js';
import { about, cachedUrl, count, flag, id } from './fields.js';
import { message } from './tokens.js';

export const cachePurge = z
  .strictObject({
    method: about(
      z.enum(['GET', 'POST']).describe('GET or POST, the methods whose answers are kept'),
      'The method of the request whose answers are to be removed. Needs `url`.',
    ).optional(),
    url: about(cachedUrl, 'What stood in its request line. It is compared byte for byte. Needs `method`.').optional(),
    project_id: about(id, 'Removes all answers of this project.').optional(),
    all: about(
      z.literal(true).describe('true').meta({ type: 'boolean', const: undefined }),
      'Removes all answers of all projects. Only true is accepted; leave it out otherwise.',
    ).optional(),
    dry_run: about(flag, 'True only counts what would be removed.').optional(),
  })
  .describe('What to remove. Give exactly one of `method` with `url`, `project_id`, and `all`.');

export const cachePurged = message
  .extend({ purged_count: count('How many answers were removed. 0 if there were none, and while the cache is off.') })
  .describe('How many answers were removed.');

export const cache = z
  .strictObject({
    backend: z.enum(CACHE_BACKENDS).describe('Where answers are kept; `off` if none are.'),
    entries: count('How many answers are kept.'),
    bytes: count('How much memory they take.'),
    hits: count('How many requests were answered from the cache since this instance started.'),
    misses: count('How many requests were looked for in the cache and not found, since this instance started.'),
  })
  .describe('What the response cache holds.');
