/** How a path is declared: its methods, and for each what it reads. */
import { isUtf8 } from 'node:buffer';
import express, { type Request, type Response, type Router } from 'express';
import * as z from 'zod';
import { Refusal } from '../core/refusal.js';
import { hasBody } from './body.js';
import { parseBody, parseQuery } from './validation.js';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
type Handler = (req: Request, res: Response) => void | Promise<void>;

/**
 * Serves a path with the methods it has; any other is 405 with `Allow`.
 *
 * @param refused answers for methods that the path does not have, but has something to say about.
 */
export function route(
  router: Router,
  path: string,
  handlers: Partial<Record<Method, Handler>>,
  refused: Partial<Record<Method, Handler>> = {},
): void {
  const allow = Object.keys(handlers).join(', ');
  router.all(path, (req, res) => {
    // An answer to HEAD is GET's without its body; Node leaves that out.
    const method = (req.method === 'HEAD' ? 'GET' : req.method) as Method;
    const handler = handlers[method] ?? refused[method];
    if (!handler) throw new Refusal('method_not_allowed', 'method not allowed', { allow });
    return handler(req, res);
  });
}

const NOTHING = z.strictObject({});

/** Takes neither query nor body. */
export function plain(run: Handler): Handler {
  return withBody(NOTHING, (_body, req, res) => run(req, res));
}

export function withQuery<Schema extends z.ZodObject>(
  schema: Schema,
  run: (query: z.output<Schema>, req: Request, res: Response) => void | Promise<void>,
  aliases?: Record<string, string>,
): Handler {
  return (req, res) => run(parseQuery(schema, req, aliases), req, res);
}

export function withBody<Schema extends z.ZodObject>(
  schema: Schema,
  run: (body: z.output<Schema>, req: Request, res: Response) => void | Promise<void>,
): Handler {
  return async (req, res) => {
    parseQuery(NOTHING, req);
    // Without a body the message is about the fields that are missing.
    const body = parseBody(schema, hasBody(req) ? await readJson(req, res) : {});
    await run(body, req, res);
  };
}

const LARGEST_BODY = '64kb';
const JSON_TYPE = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
const parseJson = express.json({
  limit: LARGEST_BODY,
  inflate: false,
  type: () => true,
  verify(_req, _res, bytes) {
    // Decoding would put U+FFFD where they are, and keep a name nobody sent.
    if (!isUtf8(bytes)) throw new Refusal('invalid_request', 'the body is not valid UTF-8');
  },
});

async function readJson(req: Request, res: Response): Promise<unknown> {
  if (!JSON_TYPE.test(req.get('content-type') ?? '')) {
    throw new Refusal('unsupported_media_type', 'the body must be plain application/json in UTF-8');
  }
  await new Promise<void>((resolve, reject) => {
    parseJson(req, res, (error?: Error) => {
      if (error) reject(error);
      else resolve();
    });
  });
  return req.body as unknown;
}
