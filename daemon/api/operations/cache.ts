/** The response cache. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { EXAMPLE_IDS } from '../schemas/fields.js';

const PURGE_DESCRIPTION = `Removes responses from the cache. Give exactly one of these: \`method\` with \`url\` removes the responses to one
request line, \`project_id\` removes those of a project, and \`all\` removes everything.

\`url\` is the target of the request line: a path with its query, in the plain form that is accepted of clients. It has no dot segments, \`//\`,
backslash or fragment, and is not a full URL. It is compared byte for byte: \`/v1/models?\` differs from \`/v1/models\`, and \`%41\` from \`A\`.
All variants of the response are removed, in all projects.

\`purged_count\` is the number of removed responses. It is 0 if none matched or the cache is off. With \`dry_run\`, matching responses are only
counted; nothing is removed and no audit record is written. The response to a request that was in flight during the purge is not stored afterwards.
503 means that Redis is unreachable and some responses may remain: try again.`;

export const cache = {
  readCache: {
    ...ROUTES.readCache,
    permission: 'read the cache',
    tag: 'Cache',
    summary: 'Get cache statistics',
    description: 'Returns the size of the response cache, and its hits and misses since this instance started.',
    response: schemas.cache,
    refusals: [],
    example: { response: { backend: 'memory', entries: 12, bytes: 48213, hits: 310, misses: 95 } },
  },
  purgeCache: {
    ...ROUTES.purgeCache,
    permission: 'purge the cache',
    parts: [{ what: 'of all projects: `all`, or `method` with `url`', permission: 'purge the whole cache' }],
    tag: 'Cache',
    summary: 'Purge the cache',
    description: PURGE_DESCRIPTION,
    body: schemas.cachePurge,
    response: schemas.cachePurged,
    refusals: ['not_found'],
    example: {
      bodies: {
        'one request line': { method: 'GET', url: '/v1/models' },
        'a project': { project_id: EXAMPLE_IDS.project },
        everything: { all: true },
        'count only': { all: true, dry_run: true },
      },
      response: { message: '2 responses purged', purged_count: 2 },
    },
  },
} as const satisfies Partial<Declared>;
