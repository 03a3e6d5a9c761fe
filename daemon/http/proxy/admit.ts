/**
 * The way into /v1, which requests and WebSocket handshakes share.
 *
 *   1 shape        method, target, framing, headers, declared length       400 405 413 414 417 431 501 505 508
 *   2 rate limit   of the client's address                                 429 503
 *   3 credential   a token, and none in the target                         401
 *   4 admission    exists & active? expired? project active? uses left?    401 401 403 429
 *   5 rate limit   of all requests with a valid token                      429 503
 *
 * It waits only where there is something to wait for: each `await` costs, and lets others in between. Behind each one it goes on only
 * if nothing has ended the request meanwhile.
 */
import type { IncomingMessage } from 'node:http';
import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { RateLimits } from '../../core/rate-limit.js';
import { loopDetected, type Refusal, unauthorized, unavailable } from '../../core/refusal.js';
import { ClientGone } from '../body.js';
import { checkNoCredentialIn, type Presented } from '../credentials.js';
import { type RequestFields, withoutTokens } from '../fields.js';
import type { HeldBodies } from '../held-bodies.js';
import type { RecordOptions, RequestRecord } from './record.js';
import { checkShape } from '../shape.js';
import type { Untaken } from '../untaken.js';

/** What requests and handshakes are served with alike. */
export interface EntryOptions extends RecordOptions {
  admission: Admission;
  rateLimits: Pick<RateLimits, 'countsAddresses' | 'countAddress' | 'countValid'>;
  /** Watches over the answers that are not the upstream's: those are watched while they come. */
  untaken: Pick<Untaken, 'watch'>;
  /** Holds bodies, and what clients send before the answer to their handshake. */
  bodies: HeldBodies;
  /** False before the database is there, and when draining is over. */
  isServing: () => boolean;
  /**
   * Left on what is forwarded (`CDN-Loop`, RFC 8586), to be known again should it come back. Not `Via`: because of that
   * some servers leave out compression and other things that they would give the client itself.
   */
  loopMark: string;
}

/** A request that asks to be let in. */
export interface Applicant {
  readonly req: IncomingMessage;
  readonly record: RequestRecord;
  /** The largest body that it may declare. */
  readonly mostBodyBytes: number;
  /** Its shape is good, and its record knows where it comes from. @returns false when it goes no further. @throws {Refusal} */
  identified(): boolean;
  /** The token that it bears. */
  presented(fields: RequestFields): Presented | null;
  /** It is let in, and goes on from here. */
  admitted(pass: Pass, fields: RequestFields): void;
  /** Its token was revoked, or its project deactivated. */
  cut(refusal: Refusal): void;
  /** Once the request is over this does nothing, and for `ClientGone` there is nobody to be told. */
  refuse(error: unknown): void;
  /** Answered, refused or cut, or its client is gone: nothing is begun for it any more. */
  isOver(): boolean;
  /** Its end has been recorded: nobody will hand a pass back. */
  isClosed(): boolean;
}

/** Takes a request through these steps, to `admitted` or to `refuse`. It never rejects. */
export async function admit(applicant: Applicant, options: EntryOptions): Promise<void> {
  try {
    const { req, record } = applicant;
    const fields = checkShape(req, applicant.mostBodyBytes);
    record.identify(fields);
    if (fields.cdnLoop?.includes(options.loopMark)) throw loopDetected();
    if (!applicant.identified()) return;
    const { rateLimits } = options;
    const counting = rateLimits.countsAddresses ? rateLimits.countAddress(record.clientIp) : undefined;
    if (counting) await unlessOver(applicant, counting);
    const asking = askAdmission(applicant, options, fields);
    const pass = asking instanceof Promise ? await asking : asking;
    enter(applicant, options, pass);
    const countingAll = rateLimits.countValid();
    if (countingAll) await unlessOver(applicant, countingAll);
    applicant.admitted(pass, withoutTokens(fields));
  } catch (error) {
    applicant.refuse(error);
  }
}

/** Waits, and goes on only if nothing ended the request meanwhile. @throws {ClientGone} */
export async function unlessOver(request: Pick<Applicant, 'isOver'>, waiting: Promise<void>): Promise<void> {
  await waiting;
  if (request.isOver()) throw new ClientGone();
}

function askAdmission(applicant: Applicant, options: EntryOptions, fields: RequestFields): Pass | Promise<Pass> {
  checkNoCredentialIn(applicant.req.url ?? '');
  if (!options.isServing()) throw unavailable();
  const presented = applicant.presented(fields);
  if (presented === null) throw unauthorized();
  return options.admission.admit(presented.secret, presented.digest);
}

function enter(applicant: Applicant, { admission }: EntryOptions, pass: Pass): void {
  applicant.record.pass = pass;
  pass.onEnded = (refusal) => {
    applicant.cut(refusal);
  };
  // The client left while the database was asked: there was no pass yet to hand back.
  if (applicant.isClosed()) {
    admission.finish(pass);
    throw new ClientGone();
  }
  // Revoked while the answer of admission was on its way: nobody was there to be told.
  if (pass.ended) {
    applicant.cut(pass.ended);
    throw pass.ended;
  }
  if (applicant.isOver()) throw new ClientGone();
}
