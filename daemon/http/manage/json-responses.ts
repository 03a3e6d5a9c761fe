/** JSON responses of the management API, with ETags and 304. */
import type { Request, Response } from 'express';
import { digestOf } from './preconditions.js';

/** @param version first part of the ETag of what was changed, for `If-Match` of a later change. Without it there is no ETag. */
export function sendJson(res: Response, status: number, value: unknown, version?: string): void {
  const text = JSON.stringify(value);
  if (version !== undefined) res.setHeader('ETag', etagOf(res, text, version));
  send(res, status, text);
}

const etagOf = (res: Response, text: string, version: string) =>
  `"${version}${digestOf([text, res.getHeader('X-Total-Count'), res.getHeader('Link')])}"`;

/**
 * Responds to GET or HEAD. The ETag is a digest of everything shown, including the paging headers set before: counts and states change
 * without a change of any row, so nothing less is sufficient.
 *
 * @param version first part of the ETag, for `If-Match`.
 */
export function sendJsonWithETag(req: Request, res: Response, value: unknown, version = ''): void {
  const text = JSON.stringify(value);
  const tag = etagOf(res, text, version);
  res.setHeader('ETag', tag);
  res.setHeader('Cache-Control', 'private, no-cache'); // Clients may store it, but must revalidate it before each use.
  if (isHeld(req.get('if-none-match'), tag)) res.status(304).end();
  else send(res, 200, text);
}

/**
 * Weak comparison of RFC 9110, 13.1.2. Express's own comparison fails on requests with `Cache-Control: no-cache`, which fetch adds to
 * every request with an `If-None-Match`.
 */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const held = ifNoneMatch.split(',').map((text) => text.trim().replace(/^W\//, ''));
  return held.includes(tag) || ifNoneMatch.trim() === '*';
}

// Not with Express's json(), which would compare the ETag again in its own way. Node omits the body for HEAD.
function send(res: Response, status: number, text: string): void {
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  res.end(text);
}
