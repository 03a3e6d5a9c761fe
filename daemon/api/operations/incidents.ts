/** What is wrong now. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const DESCRIPTION = `Returns what is wrong in the last 15 minutes, the most urgent first: refused keys of providers, failing projects, failing tokens, requests with unknown
tokens, and providers that have become slow. Each cause is there once, with what to do about it. A cause is that of a token if the token has at least 80 % of its failures in the
project, and it does not concern all tokens of the project. At least 3 failures and 5 % of the requests are needed; a refused key is reported at once. A provider is slow if the median
time until its responses start is at least 2 seconds and three times that of the 45 minutes before.

The figures come from the usage in the database, so they are those of all instances, and survive restarts. This instance first writes what it has counted; others write every five seconds.`;

export const incidents = {
  readIncidents: {
    ...ROUTES.readIncidents,
    permission: 'read usage',
    tag: 'Status',
    summary: 'Get what is wrong now',
    description: DESCRIPTION,
    response: schemas.incidents,
    refusals: [],
    example: {
      response: {
        from: '2030-01-31T11:46:00.000Z',
        to: '2030-01-31T12:00:10.000Z',
        incidents: [schemas.incidentExample],
      },
    },
  },
} as const satisfies Partial<Declared>;
