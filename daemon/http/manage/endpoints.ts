/** Routing of the management API: the methods of each path, and reading and answering each declared operation. */
import type { Request, Response, Router } from 'express';
import * as z from 'zod';
import { canSucceed, type Operation } from '../../api/operation.js';
import type { Permission } from '../../api/permissions.js';
import type { Caller } from '../../core/audit.js';
import { type Authority, type Scope, scopeFor } from '../../core/authority.js';
import type { PageOf, PageRequest } from '../../core/ports.js';
import { managementTokenRefused, Refusal, type RefusalKind } from '../../core/refusal.js';
import { framingOf, hasBody } from '../request-head.js';
import { callerOf, type Locals } from './caller.js';
import { digestOf, matchCheck, versionOf } from './preconditions.js';
import type { Core } from './wire.js';
import type { EventStreams, Feed } from './event-streams.js';
import { readJson, type SmallBodyOptions } from '../small-body.js';
import { type ListQuery, pageRequest, setPaging } from './paging.js';
import { type MethodHandler, route } from '../routing.js';
import { parseBody, parseQuery } from './validation.js';

type QueryOf<Op> = Op extends { query: infer Query extends z.ZodType } ? z.output<Query> : unknown;
type BodyOf<Op> = Op extends { body: infer Body extends z.ZodType } ? z.output<Body> : unknown;
type StateOf<Op> = Op extends { version: infer Version extends z.ZodObject } ? Core<z.output<Version>> : never;

/** A parsed and validated request. */
export interface OperationRequest<Op = unknown> {
  /** The value for `{id}` in the path; not yet validated. */
  id: unknown;
  query: QueryOf<Op>;
  body: BodyOf<Op>;
  caller: Caller;
  /** Null: the holder of the management token. */
  authority: Authority | null;
  /** What the request may concern. */
  scope: Scope;
  /** The scope of another permission that a part of the operation needs. @throws {Refusal} `not_permitted`, which is recorded for a change. */
  scopeOf: (permission: Permission) => Promise<Scope>;
  /**
   * Throws a refusal unless `If-Match` allows the state that a change begins with. The change calls it in its transaction, with what it
   * has read and locked there.
   */
  expectMatch: (before: StateOf<Op>) => void;
  /** For streams: `Last-Event-ID` as the client sent it. */
  lastEventId: string | null;
  /** Creates a signal that is aborted when the client disconnects before it has the response. */
  clientGone: () => AbortSignal;
}

/** Implementation of an operation. Returns the value of the response body, or the feed of a stream. */
type Handler<Op> = Op extends { list: infer Item extends z.ZodType }
  ? (request: OperationRequest<Op>, page: PageRequest) => Promise<PageOf<z.output<Item>>>
  : Op extends { stream: z.ZodType }
    ? (request: OperationRequest<Op>) => Promise<Feed>
    : (
        request: OperationRequest<Op>,
      ) => Promise<Op extends { response: infer Response extends z.ZodType } ? z.output<Response> : never>;

export type Handlers<Ops> = { [Name in keyof Ops]: Handler<Ops[Name]> };

interface ServeOptions extends SmallBodyOptions {
  streams: EventStreams;
  /** @param id in the path; not yet validated. */
  recordNotPermitted: (operation: string, id: unknown, refusal: Refusal, caller: Caller) => Promise<void>;
  /** Counts of refusals of some kinds, to which each refusal is added. */
  refusals: Partial<Record<RefusalKind, number>>;
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
          .map(([name, operation]) => [
            operation.method,
            counting(options.refusals, handlerOf(operation, handlers[name] as AnyHandler, options)),
          ]),
      );
    route(
      router,
      path.replace('{id}', ':id'),
      methods(canSucceed),
      methods((operation) => !canSucceed(operation)),
    );
  }
}

function abortedOnClose(res: Response): AbortSignal {
  const controller = new AbortController();
  const abort = () => {
    controller.abort();
  };
  if (res.closed) abort();
  else res.once('close', abort);
  return controller.signal;
}

// Type-erased handler: the types of request and response were checked at its declaration.
type AnyHandler = (request: OperationRequest, page: PageRequest | null) => Promise<unknown>;

const counting =
  (refusals: ServeOptions['refusals'], handle: MethodHandler): MethodHandler =>
  async (req, res) => {
    try {
      await handle(req, res);
    } catch (error) {
      const count = error instanceof Refusal ? refusals[error.kind] : undefined;
      if (error instanceof Refusal && count !== undefined) refusals[error.kind] = count + 1;
      throw error;
    }
  };

const NOTHING = z.strictObject({});

function handlerOf(operation: Operation, run: AnyHandler, options: ServeOptions): MethodHandler {
  const { method, path, list, stream, version, status = 200 } = operation;
  return async (req, res) => {
    const { authority: authenticated, hasStillAuthority } = res.locals as Locals;
    // Without a credential; null is the holder of the management token.
    if (authenticated === undefined && operation.permission !== 'public') throw managementTokenRefused();
    const authority = authenticated ?? null;
    const scopeOf = async (permission: Permission): Promise<Scope> => {
      try {
        return scopeFor(authority, permission);
      } catch (error) {
        if (method !== 'GET' && error instanceof Refusal) {
          await options.recordNotPermitted(`${method} ${path}`, req.params.id, error, callerOf(req, res));
        }
        throw error;
      }
    };
    const scope = await scopeOf(operation.permission);
    const query: unknown = parseQuery(operation.query ?? NOTHING, req, operation.aliases);
    // Without a body, the error message names the missing fields.
    const body = parseBody(operation.body ?? NOTHING, hasBody(framingOf(req)) ? await readJson(req, res, options) : {});
    const lastEventId = req.get('last-event-id') ?? null;
    const request: OperationRequest = {
      id: req.params.id,
      query,
      body,
      caller: callerOf(req, res),
      authority,
      scope,
      scopeOf,
      expectMatch: version ? matchCheck(version, req.get('if-match')) : () => undefined,
      lastEventId,
      clientGone: () => abortedOnClose(res),
    };
    if (list) {
      const page = (await run(request, pageRequest(path, query as ListQuery))) as PageOf<unknown>;
      setPaging(req, res, path, query as ListQuery, page);
      sendJsonWithETag(req, res, page.rows);
      return;
    }
    const result = await run(request, null);
    if (stream) {
      await options.streams.serve(req, res, result as Feed, hasStillAuthority);
      return;
    }
    if (operation.holdsSecret) res.setHeader('Cache-Control', 'no-store');
    const current = version && method !== 'DELETE' ? versionIn(version, result as Record<string, unknown>) : undefined;
    if (method === 'GET') sendJsonWithETag(req, res, result, current);
    else sendJson(res, status, result, current);
  };
}

const versionIn = ({ shape }: z.ZodObject, shown: Record<string, unknown>): string =>
  versionOf(Object.fromEntries(Object.keys(shape).map((name) => [name, shown[name]])));

/** JSON responses of the management API, with ETags and 304. */

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
function sendJsonWithETag(req: Request, res: Response, value: unknown, version = ''): void {
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
