import { hasBody, isBufferable, Upload } from '../body.js';
import type { RequestFields } from '../fields.js';
import type { OpenExchange } from './open-exchange.js';
import { MAX_EXTENDED_BODY_BYTES, mayLackUsage } from './added-usage.js';
import { bodyIsPartOfKey, MAX_KEY_BODY_BYTES } from './cache-request.js';

/**
 * Reads a request's body and hands it to the exchange, unless the client disconnects first or the request is refused. A small body is
 * buffered before any use is drawn, and so is one that is part of a cache key or may have to be changed; a large one is streamed once it
 * has begun.
 *
 * @returns null if the request has no body.
 */
export function readBody(exchange: OpenExchange, fields: RequestFields): Upload | null {
  const { options, record, req, res, timeouts } = exchange;
  if (!hasBody(fields)) {
    exchange.onBody(null);
    return null;
  }
  if (exchange.expectsContinue) res.writeContinue();
  timeouts.beginBody();
  const isOfKey = options.cache !== null && bodyIsPartOfKey(req, fields);
  const collectedBytes = Math.max(
    isOfKey ? MAX_KEY_BODY_BYTES : 0,
    mayLackUsage(record.pass, req, fields) ? MAX_EXTENDED_BODY_BYTES : 0,
  );
  return new Upload(req, exchange, {
    timeouts,
    memory: options.memory,
    declaredBytes: fields.contentLength === undefined ? null : Number(fields.contentLength),
    maxBytes: options.maxRequestBytes,
    maxCollectedBytes: isBufferable(fields) ? Infinity : collectedBytes,
  });
}
