/** The tokens, projects and models with the most requests or failures. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const TOP_DESCRIPTION = `Returns the tokens, projects or models with the most failed requests, requests or model tokens, the longest times, or the latest
requests. Steps are aligned to the clock and the last one is not over yet, so a window is up to one step shorter than its name says: \`from\` is its start.

The windows of 5 minutes and 1 hour come from the memory of the instances, which takes up to 64 MB on each; \`from\` is later if the instance was started
later, or if there was no room for so many tokens. Instances with the same Redis add their figures together. An instance that does not answer within a
second counts in \`instances.missing\`, as do all others if there is no Redis.

The window of 24 hours has no times. It comes from the hourly usage of all instances, of which each instance keeps sums in memory: 35 MB for 100,000 tokens
that are also used in the current hour, up to 100 MB, and twice as much for some seconds after an hour has begun. More tokens are read from the
database for each request, which takes longer. Sums of many rows may be out of date: \`to\` is when they were read. They are read again after 20 times as long
as reading took, up to 5 minutes, if reports are requested, and otherwise at least every 10 minutes.

Requests with an unknown token have no row and are only in the total. With \`project_id\` or \`token_id\` the total has only the requests of those rows.
Percentiles are interpolated in buckets, each 1.6 times as large as the one before it. With several instances, each contributes its first 2,000 rows.`;

export const top = {
  readTop: {
    ...ROUTES.readTop,
    tag: 'Usage',
    summary: 'Get the top tokens, projects or models',
    description: TOP_DESCRIPTION,
    query: schemas.topQuery,
    response: schemas.top,
    refusals: [],
    example: {
      query: { by: 'token', window: '5m', sort: 'errors', limit: 10 },
      response: {
        by: 'token',
        window: '5m',
        sort: 'errors',
        from: '2030-01-31T11:55:30.000Z',
        to: '2030-01-31T12:00:10.000Z',
        source: 'memory',
        step_seconds: 30,
        instances: { included: 1, missing: 0 },
        row_count: 1,
        untracked_requests: 0,
        total: {
          requests: 13,
          cache_hits: 1,
          errors: 3,
          refused: 1,
          upstream_refused: 2,
          upstream_errors: 0,
          cut: 0,
          prompt_tokens: 4512,
          completion_tokens: 987,
          p50_ms: 412,
          p95_ms: 1730.5,
        },
        rows: [
          {
            token_id: EXAMPLE_IDS.token,
            token_name: 'ci',
            project_id: EXAMPLE_IDS.project,
            project_name: 'Checkout',
            requests: 12,
            cache_hits: 1,
            errors: 2,
            refused: 0,
            upstream_refused: 2,
            upstream_errors: 0,
            cut: 0,
            prompt_tokens: 4512,
            completion_tokens: 987,
            p50_ms: 412,
            p95_ms: 1730.5,
            last_used_at: '2030-01-31T12:00:04.120Z',
            history: [0, 0, 1, 2, 0, 3, 1, 2, 2, 1],
            error_history: [0, 0, 0, 0, 0, 0, 0, 1, 1, 0],
          },
        ],
      },
    },
  },
} as const satisfies Partial<Declared>;
