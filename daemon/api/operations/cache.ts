/** The response cache. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const PURGING = `Removes kept answers: those to one request line, with \`method\` and \`url\`; those of a project, with \`project_id\`;
or all of them, with \`all\`. Give exactly one of the three.

\`url\` is what stands in a request line: a path under /v1, query included, in the plain form that /v1 itself accepts, so
without dot segments, \`//\`, a backslash or a fragment, and no full URL. It is compared byte for byte: \`/v1/models?\` is
another than \`/v1/models\`, and \`%41\` another than \`A\`. Every variant of the answer is removed, in every project.
\`purged_count\` is how many answers were removed; 0 if there were none, and while the cache is off. With \`dry_run\` they
are counted and stay, and no audit record is kept. A request that was on its way before does not bring its answer back. 503
means that Redis cannot be reached: it is not known then what was removed, so ask again.`;

export const cache = {
  readCache: {
    ...ROUTES.readCache,
    tag: 'Cache',
    summary: 'Show the cache',
    description: 'Shows what the response cache holds, and its hits and misses since this instance started.',
    answer: schemas.cache,
    refusals: [],
    example: { answer: { backend: 'memory', entries: 12, bytes: 48213, hits: 310, misses: 95 } },
  },
  purgeCache: {
    ...ROUTES.purgeCache,
    tag: 'Cache',
    summary: 'Purge the cache',
    description: PURGING,
    body: schemas.cachePurge,
    answer: schemas.cachePurged,
    refusals: ['not_found'],
    example: {
      bodies: {
        'one request line': { method: 'GET', url: '/v1/models' },
        'a project': { project_id: EXAMPLE_IDS.project },
        everything: { all: true },
        'count only': { all: true, dry_run: true },
      },
      answer: { message: '2 answers purged', purged_count: 2 },
    },
  },
} as const satisfies Partial<Declared>;
