/** How an instance is. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const STATUS = `Rates, \`hit_ratio\` and the upstream's times are those of the last minute on this instance; \`hit_ratio\` is the share of
requests answered from the cache among those that were not refused, and null, as the times are, where there were none. Errors are
answers of 500 and above, and those that broke off because of the upstream. Tokens and projects are counted for all
instances; among very many not for each request, so \`counted_at\` says when. They are null while the database does not answer.
\`published\`, \`dropped\`, \`records\` and \`failures\` are counted from the start of this instance.`;

export const status = {
  readStatus: {
    ...ROUTES.readStatus,
    tag: 'Status',
    summary: 'Show the status',
    description: STATUS,
    answer: schemas.status,
    refusals: [],
  },
} as const satisfies Partial<Declared>;
