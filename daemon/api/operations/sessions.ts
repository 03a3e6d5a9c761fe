/** Login sessions of front ends. */
import type { Declared } from '../operation.js';
import { ROUTES } from '../routes.js';
import * as schemas from '../schemas.js';
import { sessionVersion } from './versions.js';

const LOGIN_DESCRIPTION = `Starts a session for a user who entered the management token, or the secret of an operator, in a front end such as the Admin UI. The body contains what the user entered;
\`Authorization\` contains the front end's own credential. A wrong token returns 403. Failed attempts are rate-limited and recorded by the address in
\`X-Llmp-Client-IP\`. A correct token is never delayed. The session is valid on all instances, and its ID is in the audit log.`;

export const sessions = {
  logIn: {
    ...ROUTES.logIn,
    permission: 'manage access',
    tag: 'Sessions',
    summary: 'Log in',
    description: LOGIN_DESCRIPTION,
    body: schemas.sessionCreate,
    status: 201,
    response: schemas.session,
    refusals: ['log_in_refused'],
    example: { bodies: { 'what was typed': { token: 'what the user typed' } }, response: schemas.sessionExample },
  },
  readSession: {
    ...ROUTES.readSession,
    permission: 'use the own session',
    tag: 'Sessions',
    summary: 'Get a session',
    description:
      'Returns a session and when it ended, on whichever instance that happened. Only the holder of the management token may read other sessions than the own one.',
    response: schemas.session,
    version: sessionVersion,
    refusals: ['not_found'],
    example: { response: schemas.sessionExample },
  },
  logOut: {
    ...ROUTES.logOut,
    permission: 'use the own session',
    tag: 'Sessions',
    summary: 'Log out',
    description:
      'Ends a session on all instances. Ending an ended session also succeeds. Only the holder of the management token may end other sessions than the own one.',
    response: schemas.session,
    version: sessionVersion,
    refusals: ['not_found', 'precondition_failed'],
    example: { response: { ...schemas.sessionExample, ended_at: '2030-01-31T18:00:00.000Z' } },
  },
} as const satisfies Partial<Declared>;
