import { type Request, type RequestHandler, type Response, Router } from 'express';
import { type MigrationReport, wireMigrations } from '../api/migrations.js';
import * as schemas from '../api/schemas.js';
import type { PageOf } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import type { Registry } from '../core/registry.js';
import { callerOf } from './caller.js';
import { bearerOf, exactly } from './credentials.js';
import { plain, route, withBody, withQuery } from './endpoints.js';
import { cursorOf, pageRequest, tokenDraft, tokenFilter, tokenSort, wireProject, wireToken } from './wire.js';

export interface ManageOptions {
  managementToken: string;
  registry: Registry;
  migrations: {
    status(): Promise<MigrationReport>;
    up(): Promise<MigrationReport>;
  };
}

export function manageRoutes({ managementToken, registry, migrations }: ManageOptions): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.use(authenticate(managementToken));
  projectRoutes(router, registry);
  tokenRoutes(router, registry);

  route(router, '/migrations', {
    GET: plain(async (_req, res) => {
      res.json(wireMigrations(await migrations.status()));
    }),
  });
  route(router, '/migrations/up', {
    POST: plain(async (req, res) => {
      const { pending } = await migrations.status();
      const report = await migrations.up();
      await registry.recordMigrations(pending, callerOf(req, res));
      res.json(wireMigrations(report));
    }),
  });
  return router;
}

function authenticate(managementToken: string): RequestHandler {
  const isManagementToken = exactly(managementToken);
  return (req, _res, next) => {
    // Node keeps the first of two and says nothing; whatever stands in front of us may read the other.
    const given = req.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'authorization');
    if (given.length > 1) throw new Refusal('invalid_request', 'more than one Authorization header');
    const presented = bearerOf(req.get('authorization'));
    if (presented === null || !isManagementToken(presented)) {
      throw new Refusal('management_token_refused', 'management token missing or wrong');
    }
    next();
  };
}

function projectRoutes(router: Router, registry: Registry): void {
  route(router, '/projects', {
    POST: withBody(schemas.projectCreate, async (body, req, res) => {
      const draft = { name: body.name, upstreamKey: body.api_key };
      res.status(201).json(wireProject(await registry.createProject(draft, callerOf(req, res))));
    }),
    GET: withQuery(schemas.projectQuery, async (query, req, res) => {
      const found = await registry.projects({ isActive: query.is_active }, pageRequest(query, 'projects'));
      sendPage(req, res, found, 'projects', wireProject);
    }),
  });

  route(
    router,
    '/projects/:id',
    {
      GET: plain(async (req, res) => {
        res.json(wireProject(await registry.project(idOf(req, 'project'))));
      }),
      PATCH: withBody(schemas.projectPatch, async (body, req, res) => {
        if (Object.keys(body).length === 0) {
          throw new Refusal('invalid_request', 'nothing to change: give any of is_active, name, api_key');
        }
        const changes = { name: body.name, upstreamKey: body.api_key, isActive: body.is_active };
        res.json(wireProject(await registry.updateProject(idOf(req, 'project'), changes, callerOf(req, res))));
      }),
    },
    // Whether or not there is such a project: none is ever deleted, and trying leaves a record.
    {
      DELETE: (req, res) => {
        const { id } = req.params;
        return registry.refuseProjectDeletion(isId(id) ? id : null, callerOf(req, res));
      },
    },
  );

  route(router, '/projects/:id/tokens/revoke', {
    POST: plain(async (req, res) => {
      const count = await registry.revokeTokensOf(idOf(req, 'project'), callerOf(req, res));
      res.json({ message: `${count} ${count === 1 ? 'token' : 'tokens'} revoked`, revoked_count: count });
    }),
  });
}

function tokenRoutes(router: Router, registry: Registry): void {
  route(router, '/tokens', {
    POST: withBody(schemas.tokenCreate, async (body, req, res) => {
      if (!isId(body.project_id)) throw notFound('project');
      const { token, secret } = await registry.issueToken(tokenDraft(body), callerOf(req, res));
      res.setHeader('Cache-Control', 'no-store');
      res.status(201).json({ ...wireToken(token), token: secret });
    }),
    GET: withQuery(
      schemas.tokenQuery,
      async (query, req, res) => {
        const sort = query.sort ?? '-created_at';
        const found = await registry.tokens(tokenFilter(query), tokenSort(sort), pageRequest(query, sort));
        sendPage(req, res, found, sort, wireToken);
      },
      { projectId: 'project_id' }, // As the older Go implementation's clients write it.
    ),
  });

  route(router, '/tokens/lookup', {
    POST: withBody(schemas.tokenLookup, async (body, _req, res) => {
      res.json(wireToken(await registry.tokenOfSecret(body.token)));
    }),
  });

  route(router, '/tokens/:id', {
    GET: plain(async (req, res) => {
      res.json(wireToken(await registry.token(idOf(req, 'token'))));
    }),
    PATCH: withBody(schemas.tokenPatch, async (body, req, res) => {
      const id = idOf(req, 'token');
      const caller = callerOf(req, res);
      const token = body.is_active ? registry.reactivateToken(id, caller) : registry.revokeToken(id, caller);
      res.json(wireToken(await token));
    }),
    DELETE: plain(async (req, res) => {
      await registry.revokeToken(idOf(req, 'token'), callerOf(req, res));
      res.json({ message: 'token revoked' });
    }),
  });
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const isId = (text: unknown): text is string => typeof text === 'string' && ID.test(text);

const notFound = (what: 'project' | 'token') => new Refusal('not_found', `${what} not found`);

/** What cannot be an id is not found without asking. */
function idOf(req: Request, what: 'project' | 'token'): string {
  const { id } = req.params;
  if (!isId(id)) throw notFound(what);
  return id;
}

/** A page as a bare array; where it goes on, and how much there is in all, stand in the headers. */
function sendPage<T>(req: Request, res: Response, page: PageOf<T>, list: string, wire: (item: T) => unknown): void {
  res.setHeader('X-Total-Count', String(page.total));
  if (page.next) {
    const next = new URL(req.originalUrl, 'http://daemon');
    next.searchParams.set('cursor', cursorOf(page.next, list));
    res.setHeader('Link', `<${next.pathname}${next.search}>; rel="next"`);
  }
  res.json(page.rows.map(wire));
}
