/** Answers of the management API: JSON, and a 304 for who has it already. */
import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';

export function sendJson(res: Response, status: number, value: unknown): void {
  send(res, status, JSON.stringify(value));
}

/**
 * An answer to GET or HEAD. Its tag is a digest of all it shows, the paging headers set before included: counts and
 * states move without any row changing, so nothing less would tell.
 */
export function sendTagged(req: Request, res: Response, value: unknown): void {
  const text = JSON.stringify(value);
  const shown = JSON.stringify([text, res.getHeader('X-Total-Count'), res.getHeader('Link')]);
  const tag = `"${createHash('sha256').update(shown).digest('base64url')}"`;
  res.setHeader('ETag', tag);
  res.setHeader('Cache-Control', 'private, no-cache'); // May be kept by who asked, and is never shown unasked.
  if (isHeld(req.get('if-none-match'), tag)) res.status(304).end();
  else send(res, 200, text);
}

/**
 * The weak comparison of RFC 9110, 13.1.2. Express has its own, which gives up on `Cache-Control: no-cache`: but fetch
 * adds just that to every request with an `If-None-Match`.
 */
function isHeld(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const held = ifNoneMatch.split(',').map((text) => text.trim().replace(/^W\//, ''));
  return held.includes(tag) || ifNoneMatch.trim() === '*';
}

// Not by Express's json(), which would compare the tag again in its own way. Node leaves the body out for HEAD.
function send(res: Response, status: number, text: string): void {
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
  });
  res.end(text);
}
