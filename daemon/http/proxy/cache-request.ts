/** How a request on /v1 is looked up in the cache. */
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Pass } from '../../core/account.js';
import { fieldsOf, type FieldValues } from '../../core/cache/field-values.js';
import type { CacheRequest } from '../../core/cache-transaction.js';
import { isOptedIn, requestDirectivesOf } from '../../core/cache/request-directives.js';
import type { RequestBody } from './body.js';
import { pathOf, type RequestFields } from '../request-head.js';

/** Bodies above this size are not buffered for a cache lookup. */
export const MAX_KEY_BODY_BYTES = 1024 * 1024;

const NO_FIELDS: FieldValues = new Map();

/** Whether the request's body is part of its cache key. Only bodies up to `MAX_KEY_BODY_BYTES` are. */
export function bodyIsPartOfKey({ method }: IncomingMessage, fields: RequestFields): boolean {
  return method === 'POST' && isOptedIn(fields) && Number(fields.contentLength ?? 0) <= MAX_KEY_BODY_BYTES;
}

/** @returns null if the request does not involve the cache. */
export function cacheRequestOf(
  req: IncomingMessage,
  { pass, fields, body }: { pass: Pass; fields: RequestFields; body: RequestBody },
): CacheRequest | null {
  if (body !== null && !Buffer.isBuffer(body)) return null; // Too large to buffer.
  const { method = 'GET', url: target = '/' } = req;
  const { cacheControl, forwarded } = fields;
  let values: FieldValues | undefined;
  const directives = requestDirectivesOf(
    { method, hasBody: body !== null, cacheControl },
    () => (values ??= fieldsOf(forwarded)),
  );
  if (directives === null) return null;
  return {
    directives,
    projectId: pass.projectId,
    upstreamDigest: pass.upstreamDigest,
    method,
    target,
    path: pathOf(target),
    bodyDigest: body === null ? '' : hash('sha256', body, 'hex'),
    fields: values ?? NO_FIELDS,
  };
}

const SAFE: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Whether the method may change the resource: any method that RFC 9110 does not define as safe, unknown ones included (RFC 9111, 4.4). */
export const isUnsafe = ({ method }: IncomingMessage) => !SAFE.has(method);
