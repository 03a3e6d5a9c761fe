/** Usage reports. */
import * as z from 'zod';
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const REPORT_DESCRIPTION = `Returns one line for each combination of the dimensions in \`by\`, or one line in total without \`by\`. A request counts in the
hour in which it ended. \`since\` is rounded down to the hour, and \`until\` is rounded up. By default \`until\` is now and \`since\` is seven days earlier;
\`since\` must not be after \`until\`. \`hour\` and \`day\` are start times in UTC. Lines are sorted by time, then by number of requests, largest first.

Requests with an unknown token have a \`token_id\` of null and no model. Token counts come from the provider; responses without them, and responses from the
cache, add nothing. A report of more than 50,000 lines returns 400.`;

export const usage = {
  readUsage: {
    ...ROUTES.readUsage,
    permission: 'read usage',
    tag: 'Usage',
    summary: 'Get a usage report',
    description: REPORT_DESCRIPTION,
    query: schemas.usageQuery,
    response: z.array(schemas.usageLine),
    refusals: [],
    example: {
      query: { by: 'project,model', since: '2030-01-24T00:00:00+01:00', until: '2030-01-31T00:00:00+01:00' },
      response: [
        {
          project_id: EXAMPLE_IDS.project,
          project_name: 'Checkout',
          model: 'gpt-4o-mini',
          requests: 120,
          hits: 30,
          refused: 2,
          errors: 5,
          prompt_tokens: 45120,
          upstream_refused: 2,
          failed: 1,
          cut: 0,
          completion_tokens: 9876,
          cache_read_tokens: 20480,
          cache_write_tokens: 0,
          cost_usd: '0.0111576',
          unpriced_requests: 0,
        },
      ],
    },
  },
} as const satisfies Partial<Declared>;
