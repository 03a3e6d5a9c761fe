/** Logging in to a front end. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';

const LOGGING_IN = `For front ends whose users type the management token into a page. What the user typed is in the body; the front end's own
credential is in \`Authorization\`. A wrong token is 403; wrong ones are slowed down and recorded by \`X-Llmp-Client-IP\`, as wrong
credentials of requests are by their address. A right token is never delayed. The session is known on every instance, and its id
is in the audit log.`;

export const sessions = {
  logIn: {
    ...ROUTES.logIn,
    tag: 'Sessions',
    summary: 'Log in',
    description: LOGGING_IN,
    body: schemas.sessionCreate,
    status: 201,
    answer: schemas.session,
    refusals: ['log_in_refused'],
    example: { bodies: { 'what was typed': { token: 'what the user typed' } }, answer: schemas.sessionExample },
  },
  readSession: {
    ...ROUTES.readSession,
    tag: 'Sessions',
    summary: 'Show a session',
    description: 'Shows a session, and whether it was ended on any instance.',
    answer: schemas.session,
    refusals: ['not_found'],
    example: { answer: schemas.sessionExample },
  },
  logOut: {
    ...ROUTES.logOut,
    tag: 'Sessions',
    summary: 'Log out',
    description: 'Ends a session on all instances. Doing it again succeeds.',
    answer: schemas.session,
    refusals: ['not_found'],
    example: { answer: { ...schemas.sessionExample, ended_at: '2030-01-31T18:00:00.000Z' } },
  },
} as const satisfies Partial<Declared>;
