/** Who calls the management API: the holder of the management token, an operator, or the user of a session. */
import type { Request, RequestHandler } from 'express';
import { operations } from '../../api/operations.js';
import type { Authority } from '../../core/authority.js';
import { ConcurrencyLimit } from '../../core/concurrency-limit.js';
import type { FailedAttempts } from '../../core/failed-attempts.js';
import type { Operators } from '../../core/operators.js';
import type { Clock } from '../../core/ports.js';
import { managementTokenRefused, Refusal, sessionEnded } from '../../core/refusal.js';
import type { Sessions } from '../../core/sessions.js';
import { MANAGEMENT_WAIT_MS, withDatabaseTimeout } from '../../core/timing.js';
import { isWellFormedSecretOf } from '../../core/token.js';
import { type AddressOf, bearerOf, constantTimeMatcher } from '../client-identity.js';
import type { Locals } from './caller.js';
import { idIn } from './ids.js';

export interface AuthenticationOptions {
  managementToken: string;
  operators: Operators;
  sessions: Sessions;
  attempts: Pick<FailedAttempts, 'refuse'>;
  addressOf: AddressOf;
  clock: Clock;
}

/** Limit of secrets that are looked up at the same time: a guess may have the right checksum. */
const MAX_CONCURRENT_LOOKUPS = 8;

/** Sets `Locals.authority`, except for an operation that needs no credential and was sent none. */
export function authenticate(options: AuthenticationOptions): RequestHandler {
  const { managementToken, attempts, addressOf, clock } = options;
  const isManagementToken = constantTimeMatcher(managementToken);
  const lookups = new ConcurrencyLimit(MAX_CONCURRENT_LOOKUPS);
  const lookUp = <T>(find: () => Promise<T>) =>
    withDatabaseTimeout(clock, MANAGEMENT_WAIT_MS, (isLate) =>
      lookups.run(() => (isLate() ? Promise.reject(managementTokenRefused()) : find())),
    );
  return async (req, res, next) => {
    const locals = res.locals as Locals;
    const clientIp = addressOf(req.socket, req.get('x-forwarded-for'));
    locals.clientIp = clientIp;
    const authorization = onlyHeader(req, 'Authorization');
    const sessionId = onlyHeader(req, 'X-Llmp-Session');
    if (authorization === undefined) {
      // Not a failed attempt: many clients send the first request without a credential.
      if (!isPublic(req)) throw managementTokenRefused();
      next();
      return;
    }
    const presented = bearerOf(authorization);
    let find: (() => Promise<Authority | null>) | null;
    if (presented !== null && isManagementToken(presented)) {
      locals.isFromFrontEnd = true;
      find = sessionId === undefined ? null : () => lookUp(() => authorityOfSession(options, sessionId));
      locals.authority = (await find?.()) ?? null;
    } else {
      // What cannot be a secret of ours costs nothing more: neither a digest nor a query.
      find = presented !== null && mayBeSecret(presented) ? () => lookUp(() => authorityOf(options, presented)) : null;
      const authority = await find?.();
      if (!authority) throw attempts.refuse(clientIp, locals.requestId);
      if (sessionId !== undefined)
        throw new Refusal('invalid_request', 'X-Llmp-Session is accepted only with the management token');
      locals.authority = authority;
    }
    if (find) locals.hasStillAuthority = stillHas(locals.authority, find);
    next();
  };
}

const stillHas = (before: Authority | null, find: () => Promise<Authority | null>) => async () => {
  const now = await find();
  // A session of a person does not change before it ends, and all others follow the operator.
  return (
    (now === null) === (before === null) && now?.source.operator?.updatedAtMs === before?.source.operator?.updatedAtMs
  );
};

const mayBeSecret = (presented: string) =>
  isWellFormedSecretOf('operator', presented) || isWellFormedSecretOf('session', presented);

/** @returns null if there is no such secret, or it is not valid any more. @throws {Refusal} `session_ended` */
async function authorityOf({ operators, sessions }: AuthenticationOptions, secret: string): Promise<Authority | null> {
  const operator = await operators.ofSecret(secret);
  if (operator) return operators.authorityOf(operator);
  return (await sessions.authorityOfSecret(secret)) ?? null;
}

function authorityOfSession({ sessions }: AuthenticationOptions, header: string): Promise<Authority | null> {
  const id = idIn(header);
  if (id === null) throw sessionEnded();
  return sessions.authority(id);
}

/** Node silently keeps the first of two; a proxy in front may use the other one. */
function onlyHeader(req: Request, name: 'Authorization' | 'X-Llmp-Session'): string | undefined {
  const given = req.rawHeaders.filter((text, i) => i % 2 === 0 && text.toLowerCase() === name.toLowerCase());
  if (given.length > 1) throw new Refusal('invalid_request', `the request has more than one ${name} header`);
  return req.get(name);
}

const PUBLIC = new Set(
  Object.values(operations).flatMap(({ method, path, permission }) =>
    permission === 'public' ? `${method} ${path}` : [],
  ),
);

const isPublic = ({ method, baseUrl, path }: Request) =>
  PUBLIC.has(`${method === 'HEAD' ? 'GET' : method} ${baseUrl}${path}`);
