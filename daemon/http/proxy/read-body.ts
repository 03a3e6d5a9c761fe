import type { BufferedBody } from '../buffered-bodies.js';
import { collectBody, hasBody, bufferBody, isBufferable, streamBody } from '../body.js';
import type { RequestFields } from '../fields.js';
import type { OpenExchange } from './open-exchange.js';
import { bodyIsPartOfKey, MAX_KEY_BODY_BYTES } from './cache-request.js';

/**
 * Reads a request's body and hands it to the exchange, unless the client disconnects first or the request is refused. A small body is
 * buffered before any use is drawn; a large one is streamed once it has begun.
 *
 * @returns the buffered part of the body; null if the request has no body.
 */
export function readBody(exchange: OpenExchange, fields: RequestFields): BufferedBody | null {
  const { options, req, res, timeouts } = exchange;
  if (!hasBody(fields)) {
    exchange.onBody(null);
    return null;
  }
  if (exchange.expectsContinue) res.writeContinue();
  timeouts.beginBody();
  const buffered = options.bodies.open(() => {
    // Other early responses are followed by reading the rest for a while. Here that would take the memory that is needed.
    res.once('finish', () => req.socket.destroy());
    exchange.clientTimedOut();
  });
  if (isBufferable(fields)) {
    bufferBody(req, buffered, timeouts, exchange);
    return buffered;
  }
  const streaming = streamBody(req, options.maxRequestBytes, timeouts);
  const isCollected = options.cache !== null && bodyIsPartOfKey(req, fields);
  const reading = isCollected ? streaming.then((body) => collectBody(body, MAX_KEY_BODY_BYTES, buffered)) : streaming;
  reading.then(
    (body) => {
      exchange.onBody(body);
    },
    (error: unknown) => {
      exchange.refuse(error);
    },
  );
  return buffered;
}
