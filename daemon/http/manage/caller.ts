import { isIP } from 'node:net';
import type { Request, Response } from 'express';
import {
  FRONT_ENDS,
  type FrontEnd,
  MAX_REASON_LENGTH,
  MAX_USER_LENGTH,
  NAMED_ACTORS,
  UUID_PATTERN,
} from '../../api/vocabulary.js';
import type { Caller } from '../../core/audit.js';
import type { Authority } from '../../core/authority.js';
import { Refusal } from '../../core/refusal.js';
import type { CorsFields } from '../cors.js';

/** What the app stores for a request before its handler runs (`res.locals`). */
export interface Locals {
  requestId: string;
  /** Null if there is no address, absent if it is not needed. */
  clientIp?: string | null;
  /** CORS headers of any response to this request. Absent on paths without CORS. */
  cors?: CorsFields;
  /** Who calls the management API; null: the holder of the management token. Absent on other paths, and without a credential. */
  authority?: Authority | null;
  /** Whether the request has the management token, as front ends do: then it may speak for a user. */
  isFromFrontEnd?: boolean;
  /** Whether the caller still has that authority, for responses that take long. Absent for the management token itself, which does not change. */
  hasStillAuthority?: () => Promise<boolean>;
}

const invalid = (message: string) => new Refusal('invalid_request', message);

/**
 * The caller, for the audit record. What it says of itself is not verified, but an operator or a person is named as such, and only a front
 * end has users at other addresses: limits count by them.
 */
export function callerOf(req: Request, res: Response): Caller {
  const { requestId, clientIp = null, authority, isFromFrontEnd } = res.locals as Locals;
  const reported = browserOf(req.get('x-llmp-client-ip'));
  return {
    actor: authority?.actor ?? actorOf(req.get('x-llmp-actor')),
    user: userOf(req.get('x-llmp-user')),
    requestId,
    clientIp: isFromFrontEnd && reported !== null ? reported : clientIp,
    reason: reasonOf(req.get('x-audit-reason')),
    batch: batchOf(req.get('x-audit-batch')),
    undoOf: null,
  };
}

function actorOf(header: string | undefined): Caller['actor'] {
  if (header === undefined) return 'management';
  const frontEnd: FrontEnd | undefined = FRONT_ENDS.find((name) => name === header);
  if (frontEnd === undefined) throw invalid(`X-Llmp-Actor must be one of ${FRONT_ENDS.join(', ')}`);
  return frontEnd;
}

/** @param header percent-encoded UTF-8, since a header cannot contain all characters. */
function reasonOf(header: string | undefined): string | null {
  if (header === undefined || header === '') return null;
  const reason = decoded(header);
  if (reason === null || Array.from(reason).length > MAX_REASON_LENGTH || /\p{Cc}/u.test(reason)) {
    throw invalid(
      `X-Audit-Reason must be at most ${MAX_REASON_LENGTH} characters, percent-encoded, without control characters`,
    );
  }
  return reason;
}

function batchOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (!UUID_PATTERN.test(header)) throw invalid('X-Audit-Batch must be a UUID');
  return header.toLowerCase();
}

/** Who is verified is named like this, also where the user of a front end stands: who revoked a token. */
const NAMED = new RegExp(`^\\s*(?:${NAMED_ACTORS.join('|')}):`, 'i');

/** @param header percent-encoded like the reason. It is shown as the name of a person, so invisible characters are not allowed. */
function userOf(header: string | undefined): string | null {
  if (header === undefined || header === '') return null;
  const user = decoded(header);
  if (user === null || Array.from(user).length > MAX_USER_LENGTH || /[\p{C}\p{Zl}\p{Zp}]/u.test(user)) {
    throw invalid(
      `X-Llmp-User must be at most ${MAX_USER_LENGTH} printable characters, percent-encoded, such as ana@laptop`,
    );
  }
  if (NAMED.test(user))
    throw invalid(`X-Llmp-User must be a name without ${NAMED_ACTORS.join(':, ')}: at its beginning`);
  return user;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function browserOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  // A zone (`%eth0`) names an interface of the sender, and may have any length.
  if (isIP(header) === 0 || header.includes('%')) throw invalid('X-Llmp-Client-IP must be an IP address');
  return header;
}
