/** Handlers of sessions. */
import type { Operations } from '../../api/operations.js';
import type { FailedAttempts } from '../../core/failed-attempts.js';
import type { Operators } from '../../core/operators.js';
import type { Sessions } from '../../core/sessions.js';
import { constantTimeMatcher } from '../client-identity.js';
import type { Handlers, OperationRequest } from './endpoints.js';
import { idOf, notFound } from './ids.js';
import { wireSession } from './wire.js';

export interface SessionOptions {
  managementToken: string;
  operators: Operators;
  sessions: Sessions;
  /** Of log-ins, which have limits of their own. */
  logInAttempts: Pick<FailedAttempts, 'refuse'>;
}

export function sessionHandlers({
  managementToken,
  operators,
  sessions,
  logInAttempts,
}: SessionOptions): Handlers<Pick<Operations, 'logIn' | 'readSession' | 'logOut'>> {
  const isManagementToken = constantTimeMatcher(managementToken);
  return {
    logIn: async ({ body, caller }) => {
      if (isManagementToken(body.token)) return wireSession(await sessions.begin(caller));
      // As for the header: what cannot be the secret of an operator never reaches the database.
      const operator = await operators.ofSecret(body.token);
      if (!operator || !operators.authorityOf(operator)) throw logInAttempts.refuse(caller.clientIp, caller.requestId);
      return wireSession(await sessions.beginForOperator(operator, caller));
    },

    readSession: async (request) => wireSession(await sessions.session(ownSessionOf(request))),

    logOut: async (request) =>
      wireSession(await sessions.end(ownSessionOf(request), request.caller, request.expectMatch)),
  };
}

/** Only the holder of the management token may know other sessions than the own one. */
function ownSessionOf(request: OperationRequest): string {
  const id = idOf(request, 'session');
  if (request.authority && request.authority.source.sessionId !== id) throw notFound('session');
  return id;
}
