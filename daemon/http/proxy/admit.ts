/**
 * Admission to /v1, for requests and WebSocket handshakes.
 *
 *   1 shape        method, target, framing, headers, declared length       400 405 413 414 417 431 501 505 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   a token, and none in the target                         401
 *   4 admission    exists & active? expired? project active? uses left?    401 401 403 429
 *                  route and models allowed?                               400 403 415
 *   5 rate limit   of all requests with a valid token                      429 503
 *
 * If models may be named in the body, step 5 follows when it was read.
 *
 * When the request is about to be forwarded, its use is drawn, with the checks of step 4 again.
 *
 * Each step is awaited only if it has to wait: an `await` costs time, and lets other requests run in between. After each wait, admission
 * continues only if the request has not ended in the meantime.
 */
import type { IncomingMessage } from 'node:http';
import type { Live, Reloadable } from '../../../config/settings.js';
import type { Pass, PassHolder } from '../../core/account.js';
import type { Admission, Asking } from '../../core/admission.js';
import type { MemoryLimit } from '../../core/memory-limit.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { loopDetected, unauthorized, unavailable } from '../../core/refusal.js';
import { ClientGone, type UnreadResponses } from '../connection-ends.js';
import { checkNoCredentialIn, type PresentedToken, takeKeyFromQuery } from '../client-identity.js';
import { checkShape, type RequestFields, withoutTokens } from '../request-head.js';
import type { RecordOptions, RequestRecord } from './request-record.js';

/** Dependencies that requests and WebSocket handshakes share. */
export interface AdmitOptions extends RecordOptions {
  admission: Admission;
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countAuthenticated'>;
  /** Ends the connections of clients that do not read a complete response. */
  unreadResponses: Pick<UnreadResponses, 'watch'>;
  /** Memory for everything that waits between the client and the upstream. */
  memory: MemoryLimit;
  /** False until the database is connected, and after draining has ended. */
  isServing: () => boolean;
  /**
   * Added to forwarded requests (`CDN-Loop`, RFC 8586), to detect requests that come back. Not `Via`, because some servers turn off
   * compression and other features for requests that have it.
   */
  loopMark: string;
  live: Live<keyof AdmitSettings>;
}

export type AdmitSettings = Pick<Reloadable, 'queryKey'>;

/** A request or handshake that goes through admission. */
export interface AdmissionRequest extends PassHolder, Asking {
  readonly req: IncomingMessage;
  readonly record: RequestRecord;
  /** Limit for the declared length of its body. */
  readonly maxBodyBytes: number;
  /** Its shape is valid and its client's address is recorded. @returns false if it needs no admission. @throws {Refusal} */
  onIdentified(): boolean;
  /** The token that the request presents. */
  presentedToken(fields: RequestFields): PresentedToken | null;
  /** Whether its body must be read before it is known whether it is allowed. The limit of all requests counts it after that. */
  readsBody(pass: Pass): boolean;
  /** It is admitted; processing continues from here. */
  onAdmitted(pass: Pass, fields: RequestFields): void;
  /** Does nothing if the request has ended. For `ClientGone` there is no client left to respond to. */
  refuse(error: unknown): void;
  /** Whether it was answered, refused or cut, or its client has disconnected; then nothing more is started for it. */
  hasEnded(): boolean;
  /** Whether its end has been recorded; then no caller would return a pass. */
  isClosed(): boolean;
}

/** Takes a request through the admission steps, to `onAdmitted` or `refuse`. Never rejects. */
export async function admit(applicant: AdmissionRequest, options: AdmitOptions): Promise<void> {
  try {
    const { req, record } = applicant;
    if (options.live.current.queryKey === 'accept') takeKeyFromQuery(req);
    const fields = checkShape(req, applicant.maxBodyBytes);
    record.identify(fields);
    if (fields.cdnLoop?.includes(options.loopMark)) throw loopDetected();
    if (!applicant.onIdentified()) return;
    const { rateLimits } = options;
    const counting = rateLimits.countsAddresses ? rateLimits.countAddress(record.clientIp) : undefined;
    if (counting) await unlessEnded(applicant, counting);
    const asking = askAdmission(applicant, options, fields);
    const pass = asking instanceof Promise ? await asking : asking;
    enter(applicant, options, pass);
    if (!applicant.readsBody(pass)) {
      const countingAll = rateLimits.countAuthenticated();
      if (countingAll) await unlessEnded(applicant, countingAll);
    }
    applicant.onAdmitted(pass, withoutTokens(fields));
  } catch (error) {
    applicant.refuse(error);
  }
}

/** Waits. @throws {ClientGone} if the request has ended in the meantime. */
export async function unlessEnded(request: Pick<AdmissionRequest, 'hasEnded'>, waiting: Promise<void>): Promise<void> {
  await waiting;
  if (request.hasEnded()) throw new ClientGone();
}

/**
 * Checked after each wait on the way to the upstream: the request may have been refused, its token revoked, or its client have disconnected.
 *
 * @throws why it must not be forwarded.
 */
export function checkNotEnded(request: Pick<AdmissionRequest, 'hasEnded'>, pass: Pass): void {
  if (pass.ended) throw pass.ended;
  if (request.hasEnded()) throw new ClientGone();
}

function askAdmission(applicant: AdmissionRequest, options: AdmitOptions, fields: RequestFields): Pass | Promise<Pass> {
  checkNoCredentialIn(applicant.req.url ?? '');
  if (!options.isServing()) throw unavailable();
  const presented = applicant.presentedToken(fields);
  if (presented === null) throw unauthorized();
  return options.admission.admit(presented.secret, presented.digest, applicant);
}

function enter(applicant: AdmissionRequest, { admission }: AdmitOptions, pass: Pass): void {
  applicant.record.pass = pass;
  pass.holder = applicant;
  // The client disconnected during the database lookup: there was no pass yet that could be returned.
  if (applicant.isClosed()) {
    admission.finish(pass);
    throw new ClientGone();
  }
  // Revoked after admission decided, before `holder` was set.
  if (pass.ended) {
    applicant.cut(pass.ended);
    throw pass.ended;
  }
  if (applicant.hasEnded()) throw new ClientGone();
}
