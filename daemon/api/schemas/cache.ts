import * as z from 'zod';
import { CACHE_BACKENDS } from '../vocabulary.js';
import { about, cachedUrl, count, flag, id } from './fields.js';
import { message } from './tokens.js';

export const cachePurge = z
  .strictObject({
    method: about(
      z.enum(['GET', 'POST']).describe('GET or POST, the methods whose responses are cached'),
      'Method of the request whose responses are removed. Requires `url`.',
    ).optional(),
    url: about(
      cachedUrl,
      'Target of the request, as in its request line; compared byte for byte. Requires `method`.',
    ).optional(),
    project_id: about(id, 'Remove all responses of this project.').optional(),
    all: about(
      z.literal(true).describe('true').meta({ type: 'boolean', const: undefined }),
      'Remove all responses of all projects. The only accepted value is true.',
    ).optional(),
    dry_run: about(flag, 'Count the matching responses without removing them.').optional(),
  })
  .describe('The responses to remove. Give exactly one of `method` with `url`, `project_id`, and `all`.');

export const cachePurged = message
  .extend({ purged_count: count('Number of removed responses. 0 if none matched or the cache is off.') })
  .describe('Result of a purge.');

export const cache = z
  .strictObject({
    backend: z.enum(CACHE_BACKENDS).describe('Where responses are stored; `off` if the cache is disabled.'),
    entries: count('Number of stored responses.'),
    bytes: count('Memory that the stored responses use, in bytes.'),
    hits: count('Number of requests served from the cache since this instance started.'),
    misses: count('Number of requests looked up in the cache without success since this instance started.'),
  })
  .describe('Statistics of the response cache.');
