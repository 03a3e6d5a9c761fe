/** What tokens were used for. */
import * as z from 'zod';
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const ADDING_UP = `The answer has a line for each combination of what \`by\` names; without it, one line for everything. A request
counts in the hour in which it ended. \`since\` goes back to the beginning of its hour and \`until\` on to the end of its
own; unless given, \`until\` is now and \`since\` seven days before it. \`since\` must not be after \`until\`. \`hour\` and \`day\` are when
those begin, in UTC. Lines are in the order of time, and of those of one time the one with most requests comes first.

Requests whose token is not known are under a \`token_id\` of null; they have no model. Token counts are the provider's: an answer that tells
none adds nothing to them, and neither does one out of the cache. More than 50000 lines are 400.`;

export const usage = {
  readUsage: {
    ...ROUTES.readUsage,
    tag: 'Usage',
    summary: 'Report usage',
    description: ADDING_UP,
    query: schemas.usageQuery,
    answer: z.array(schemas.usageLine),
    refusals: [],
    example: {
      query: { by: 'project,model', since: '2030-01-24T00:00:00+01:00', until: '2030-01-31T00:00:00+01:00' },
      answer: [
        {
          project_id: EXAMPLE_IDS.project,
          model: 'gpt-4o-mini',
          requests: 120,
          hits: 30,
          refused: 2,
          errors: 1,
          prompt_tokens: 45120,
          upstream_refused: 2,
          upstream_errors: 1,
          cut: 0,
          completion_tokens: 9876,
        },
      ],
    },
  },
} as const satisfies Partial<Declared>;
