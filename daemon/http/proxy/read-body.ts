import type { HeldBody } from '../held-bodies.js';
import { gatherBody, hasBody, holdBody, isHeld, type RequestBody, streamBody } from '../body.js';
import type { RequestFields } from '../fields.js';
import type { OpenExchange } from './open-exchange.js';
import { isSoughtByBody, LARGEST_LOOKED_UP } from './seeking.js';

/**
 * Reads the body of a request: a small one is held before anything is spent, a large one streams once it has begun.
 *
 * @param onBody not called when the client leaves before, or the request is refused.
 * @returns what is held of it; null when it has no body.
 */
export function readBody(
  exchange: OpenExchange,
  fields: RequestFields,
  onBody: (body: RequestBody) => void,
): HeldBody | null {
  const { options, req, res, turn } = exchange;
  if (!hasBody(fields)) {
    onBody(null);
    return null;
  }
  if (exchange.expectsContinue) res.writeContinue();
  turn.beginBody();
  const held = options.bodies.open(() => {
    // To read on for a while, as behind other early answers, would take the memory that is wanted.
    res.once('finish', () => req.socket.destroy());
    exchange.clientSilent();
  });
  if (isHeld(fields)) {
    holdBody(req, held, turn, onBody);
    return held;
  }
  const streaming = streamBody(req, options.maxRequestBytes, turn);
  const isGathered = options.cache !== null && isSoughtByBody(req, fields);
  const reading = isGathered ? streaming.then((body) => gatherBody(body, LARGEST_LOOKED_UP, held)) : streaming;
  reading.then(onBody, (error: unknown) => {
    exchange.refuse(error);
  });
  return held;
}
