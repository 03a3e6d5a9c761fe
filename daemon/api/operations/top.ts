/** The tokens, projects and models with the most requests or failures. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const TOP_DESCRIPTION = `Returns the tokens, projects, models of projects or models with the most failures, requests or model tokens, the highest cost, the longest times, or the
latest requests. Steps are aligned to the clock and the last one is not over yet, so a window is up to one step shorter than its name says: \`from\` is its start.

The figures come from the usage in the database, so they contain the requests of all instances, and survive restarts. This instance first writes what it has
counted; others write every five seconds. The windows of 5 minutes and 1 hour are read from the usage by minute, which is stored for an hour. The window of 24
hours is read from the hourly usage, which has no times. A report of more than 500 rows is reused for 20 times as long as reading it took, within
a minute: \`to\` is when it was read.

Requests with an unknown token have no row and are only in the total. With \`project_id\` or \`token_id\` the total has only the requests of those rows.
Percentiles are interpolated in buckets, each twice as large as the one before it: 10 ms, 20 ms and so on up to 328 s.`;

export const top = {
  readTop: {
    ...ROUTES.readTop,
    permission: 'read usage',
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
        from: '2030-01-31T11:56:00.000Z',
        to: '2030-01-31T12:00:10.000Z',
        step_seconds: 60,
        row_count: 1,
        total: {
          requests: 13,
          cache_hits: 1,
          errors: 3,
          refused: 1,
          upstream_refused: 2,
          failed: 0,
          cut: 0,
          prompt_tokens: 4512,
          completion_tokens: 987,
          cost_usd: '0.001269',
          unpriced_requests: 0,
          p50_ms: 412,
          p95_ms: 1730.5,
          history: [1, 2, 3, 3, 4],
          error_history: [0, 0, 0, 1, 2],
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
            failed: 0,
            cut: 0,
            prompt_tokens: 4512,
            completion_tokens: 987,
            cost_usd: '0.001269',
            unpriced_requests: 0,
            p50_ms: 412,
            p95_ms: 1730.5,
            last_used_at: '2030-01-31T12:00:04.120Z',
            history: [1, 2, 3, 3, 3],
            error_history: [0, 0, 0, 1, 1],
          },
        ],
      },
    },
  },
} as const satisfies Partial<Declared>;
