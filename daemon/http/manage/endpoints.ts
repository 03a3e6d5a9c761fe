/** How a path is served: its methods, and what each of the declared operations reads and answers. */
import type { Request, Response, Router } from 'express';
import * as z from 'zod';
import { canSucceed, type Operation } from '../../api/operation.js';
import type { Caller } from '../../core/audit.js';
import type { PageOf, PageRequest } from '../../core/ports.js';
import { Refusal } from '../../core/refusal.js';
import { sendJson, sendTagged } from './answers.js';
import { framingOf, hasBody } from '../body.js';
import { callerOf } from './caller.js';
import type { EventStreams, Feed } from './event-stream.js';
import { type SmallBodyOptions, readJson } from '../small-body.js';
import { type ListQuery, pageRequest, setPaging } from './paging.js';
import { parseBody, parseQuery } from './validation.js';

type Method = Operation['method'];
type MethodHandler = (req: Request, res: Response) => void | Promise<void>;

/**
 * Serves a path with the methods it has, HEAD where it has GET, and OPTIONS; any other is 405 with `Allow`.
 *
 * @param refused answers for methods that the path does not have, but has something to say about.
 */
export function route(
  router: Router,
  path: string,
  handlers: Partial<Record<Method, MethodHandler>>,
  refused: Partial<Record<Method, MethodHandler>> = {},
): void {
  const methods = Object.keys(handlers);
  const allow = [...methods, ...(handlers.GET ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  router.all(path, (req, res) => {
    if (req.method === 'OPTIONS') {
      res.setHeader('Allow', allow);
      res.status(204).end();
      return;
    }
    // An answer to HEAD is GET's without its body; Node leaves that out.
    const method = (req.method === 'HEAD' ? 'GET' : req.method) as Method;
    const handler = handlers[method] ?? refused[method];
    if (!handler) throw new Refusal('method_not_allowed', 'method not allowed', { allow });
    return handler(req, res);
  });
}

type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType } ? z.output<Query> : unknown;
type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? z.output<Body> : unknown;

/** A request that was read and found well-formed. */
export interface Asked<Op = unknown> {
  /** What stands in the place of `{id}`; not yet known to be one. */
  id: unknown;
  query: QueryOf<Op>;
  body: BodyOf<Op>;
  caller: Caller;
  /** Of a stream: the id of the last event that the client has, as it says. */
  lastEventId: string | null;
}

/** What an operation does: it gives the value that is its success's body, or what feeds it. */
export type Handler<Op> = Op extends { list: infer Item extends z.ZodType }
  ? (asked: Asked<Op>, page: PageRequest) => Promise<PageOf<z.output<Item>>>
  : Op extends { stream: z.ZodType }
    ? (asked: Asked<Op>) => Promise<Feed>
    : (asked: Asked<Op>) => Promise<Op extends { answer: infer Answer extends z.ZodType } ? z.output<Answer> : never>;

export type Handlers<Ops> = { [Name in keyof Ops]: Handler<Ops[Name]> };

export interface ServeOptions extends SmallBodyOptions {
  streams: EventStreams;
}

/** Serves each operation at its method and path. */
export function serve<Ops extends Record<string, Operation>>(
  router: Router,
  ops: Ops,
  handlers: Handlers<Ops>,
  options: ServeOptions,
): void {
  const named = Object.entries<Operation>(ops);
  for (const path of new Set(named.map(([, { path }]) => path))) {
    const methods = (which: (operation: Operation) => boolean) =>
      Object.fromEntries(
        named
          .filter(([, operation]) => operation.path === path && which(operation))
          .map(([name, operation]) => [operation.method, answering(operation, handlers[name] as AnyHandler, options)]),
      );
    route(
      router,
      path.replace('{id}', ':id'),
      methods(canSucceed),
      methods((operation) => !canSucceed(operation)),
    );
  }
}

// That its request and its answer are those of its operation was checked where it was declared.
type AnyHandler = (asked: Asked, page: PageRequest | null) => Promise<unknown>;

const NOTHING = z.strictObject({});

function answering(operation: Operation, run: AnyHandler, options: ServeOptions): MethodHandler {
  const { method, path, list, stream, status = 200 } = operation;
  return async (req, res) => {
    const query: unknown = parseQuery(operation.query ?? NOTHING, req, operation.aliases);
    // Without a body the message is about the fields that are missing.
    const body = parseBody(operation.body ?? NOTHING, hasBody(framingOf(req)) ? await readJson(req, res, options) : {});
    const lastEventId = req.get('last-event-id') ?? null;
    const asked: Asked = { id: req.params.id, query, body, caller: callerOf(req, res), lastEventId };
    if (list) {
      const page = (await run(asked, pageRequest(path, query as ListQuery))) as PageOf<unknown>;
      setPaging(req, res, path, query as ListQuery, page);
      sendTagged(req, res, page.rows);
      return;
    }
    const answer = await run(asked, null);
    if (stream) {
      await options.streams.answer(req, res, answer as Feed);
      return;
    }
    if (operation.holdsSecret) res.setHeader('Cache-Control', 'no-store');
    if (method === 'GET') sendTagged(req, res, answer);
    else sendJson(res, status, answer);
  };
}
