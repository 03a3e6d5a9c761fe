/** How a request on /v1 comes to the cache. */
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Pass } from '../../core/account.js';
import { fieldsOf, type FieldValues } from '../../core/cache/field-values.js';
import type { VisitFacts } from '../../core/visit.js';
import { isOptedIn, wishOf } from '../../core/cache/wish.js';
import type { RequestBody } from '../body.js';
import type { RequestFields } from '../fields.js';
import { pathOf } from '../shape.js';

/** Beyond it no body is held for the sake of the cache. */
export const LARGEST_LOOKED_UP = 1024 * 1024;

const NO_FIELDS: FieldValues = new Map();

/** Whether its body, as long as it may be, is a part of its place in the cache. */
export function isSoughtByBody({ method }: IncomingMessage, fields: RequestFields): boolean {
  return method === 'POST' && isOptedIn(fields) && Number(fields.contentLength ?? 0) <= LARGEST_LOOKED_UP;
}

/** @returns null when the request has no business with the cache. */
export function visitFactsOf(
  req: IncomingMessage,
  { pass, fields, body }: { pass: Pass; fields: RequestFields; body: RequestBody },
): VisitFacts | null {
  if (body !== null && !Buffer.isBuffer(body)) return null; // Too large to be held.
  const { method = 'GET', url: target = '/' } = req;
  const { cacheControl, forwarded } = fields;
  let values: FieldValues | undefined;
  const wish = wishOf({ method, hasBody: body !== null, cacheControl }, () => (values ??= fieldsOf(forwarded)));
  if (wish === null) return null;
  return {
    wish,
    projectId: pass.projectId,
    upstreamKeyDigest: pass.upstreamKeyDigest,
    method,
    target,
    path: pathOf(target),
    bodyDigest: body === null ? '' : hash('sha256', body, 'hex'),
    fields: values ?? NO_FIELDS,
  };
}

const SAFE: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Whether it may change what it names: any method that RFC 9110 does not call safe, unknown ones included (RFC 9111, 4.4). */
export const isWrite = ({ method }: IncomingMessage) => !SAFE.has(method);
