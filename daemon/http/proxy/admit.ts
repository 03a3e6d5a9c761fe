/**
 * Admission to /v1, for requests and WebSocket handshakes.
 *
 *   1 shape        method, target, framing, headers, declared length       400 405 413 414 417 431 501 505 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   a token, and none in the target                         401
 *   4 admission    exists & active? expired? project active? uses left?    401 401 403 429
 *   5 rate limit   of all requests with a valid token                      429 503
 *
 * `drawUse` is what follows when the request is about to be forwarded: the checks of step 4 again, and the use.
 *
 * Each step is awaited only if it has to wait: an `await` costs time, and lets other requests run in between. After each wait, admission
 * continues only if the request has not ended in the meantime.
 */
import type { IncomingMessage } from 'node:http';
import type { Live, Reloadable } from '../../../config/settings.js';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { MemoryLimit } from '../../core/memory-limit.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { loopDetected, type Refusal, unauthorized, unavailable } from '../../core/refusal.js';
import { ClientGone } from '../body.js';
import { checkNoCredentialIn, type PresentedToken, takeKeyFromQuery } from '../credentials.js';
import { checkShape, type RequestFields, withoutTokens } from '../request-head.js';
import type { Slot } from './upstream-connection.js';
import type { RecordOptions, RequestRecord } from './request-record.js';
import type { UnreadResponses } from '../connection-ends.js';

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
export interface AdmissionRequest {
  readonly req: IncomingMessage;
  readonly record: RequestRecord;
  /** Limit for the declared length of its body. */
  readonly maxBodyBytes: number;
  /** Its shape is valid and its client's address is recorded. @returns false if it needs no admission. @throws {Refusal} */
  onIdentified(): boolean;
  /** The token that the request presents. */
  presentedToken(fields: RequestFields): PresentedToken | null;
  /** It is admitted; processing continues from here. */
  onAdmitted(pass: Pass, fields: RequestFields): void;
  /** Called when its token was revoked or its project deactivated. */
  cut(refusal: Refusal): void;
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
    const countingAll = rateLimits.countAuthenticated();
    if (countingAll) await unlessEnded(applicant, countingAll);
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
 * Waits until the request holds its connection, and draws a use.
 *
 * @param draw what is drawn. @returns a promise only if it has to wait.
 * @param forward called in the same turn as the checks of the draw, if it did not have to wait, so that nothing can happen in between.
 * @throws {Refusal} (rejects with) why it must not be forwarded. Then nobody uses the connection.
 */
export async function drawUse(
  request: Pick<AdmissionRequest, 'hasEnded'>,
  { slot, pass, draw, forward }: { slot: Slot; pass: Pass; draw: () => undefined | Promise<void>; forward: () => void },
): Promise<void> {
  if (slot.granted) await slot.granted;
  // The client disconnected or the request was refused while its body arrived or it waited for a connection.
  if (request.hasEnded()) throw new ClientGone();
  const waitingForUnit = draw();
  if (waitingForUnit) await waitingForUnit;
  if (pass.ended) throw pass.ended;
  if (request.hasEnded()) throw new ClientGone();
  forward();
}

function askAdmission(applicant: AdmissionRequest, options: AdmitOptions, fields: RequestFields): Pass | Promise<Pass> {
  checkNoCredentialIn(applicant.req.url ?? '');
  if (!options.isServing()) throw unavailable();
  const presented = applicant.presentedToken(fields);
  if (presented === null) throw unauthorized();
  return options.admission.admit(presented.secret, presented.digest);
}

function enter(applicant: AdmissionRequest, { admission }: AdmitOptions, pass: Pass): void {
  applicant.record.pass = pass;
  pass.onEnded = (refusal) => {
    applicant.cut(refusal);
  };
  // The client disconnected during the database lookup: there was no pass yet that could be returned.
  if (applicant.isClosed()) {
    admission.finish(pass);
    throw new ClientGone();
  }
  // Revoked after admission decided, before `onEnded` was set.
  if (pass.ended) {
    applicant.cut(pass.ended);
    throw pass.ended;
  }
  if (applicant.hasEnded()) throw new ClientGone();
}
