/**
 * What the Admin UI offers to each role, compared with what the management API allows. For each route of the Admin UI the table names a
 * request to the API that needs the same permission, and that changes nothing. A user must be offered a route by the links and forms of
 * the pages exactly if the API does not refuse that request, and the route itself must agree.
 */
import { expect } from 'chai';
import { ROUTES } from '../../daemon/admin/app.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { type Role, ROLES } from '../../daemon/api/vocabulary.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon } from '../support/daemon.js';
import { bodyOf } from '../support/management.js';
import { TestBrowser } from './test-browser.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

/** Method, path and body. `:token` and `:project` are those that the user may see. */
type Ask = readonly [method: string, path: string, body?: object];

const CHANGE_PROJECT: Ask = ['PATCH', '/manage/projects/:project', {}];
const CREATE_PROJECT: Ask = ['POST', '/manage/projects', {}];
const READ_TOKENS: Ask = ['GET', '/manage/tokens'];
const ISSUE: Ask = ['POST', '/manage/tokens', {}];
const REVOKE: Ask = ['DELETE', `/manage/tokens/${UNKNOWN}`];
const CHANGE_TOKEN: Ask = ['PATCH', '/manage/tokens/:token', { is_active: true }];
const RESTRICT: Ask = ['PATCH', '/manage/tokens/:token', { limits: null }];
const READ_AUDIT: Ask = ['GET', '/manage/audit'];
const READ_EVENTS: Ask = ['GET', '/manage/events'];
const PURGE: Ask = ['POST', '/manage/cache/purge', { project_id: ':project', dry_run: true }];
const UNDO: Ask = ['POST', `/manage/batches/${UNKNOWN}/undo`, {}];
const OPERATORS: Ask = ['GET', '/manage/operators'];
const TRUSTS: Ask = ['GET', '/manage/trusts'];

const ASKS: Readonly<Record<string, Ask>> = {
  'GET /': ['GET', '/manage/status'],
  'POST /': ISSUE,
  'GET /projects': ['GET', '/manage/projects'],
  'GET /projects/new': CREATE_PROJECT,
  'POST /projects/new': CREATE_PROJECT,
  'GET /projects/:id': ['GET', '/manage/projects/:project'],
  'POST /projects/:id/rename': CHANGE_PROJECT,
  'POST /projects/:id/key': CHANGE_PROJECT,
  'POST /projects/:id/check': ['POST', `/manage/projects/${UNKNOWN}/check`],
  'GET /projects/:id/activate': CHANGE_PROJECT,
  'POST /projects/:id/activate': CHANGE_PROJECT,
  'GET /projects/:id/deactivate': CHANGE_PROJECT,
  'POST /projects/:id/deactivate': CHANGE_PROJECT,
  'GET /projects/:id/revoke-all': ['POST', `/manage/projects/${UNKNOWN}/tokens/revoke`],
  'POST /projects/:id/revoke-all': ['POST', `/manage/projects/${UNKNOWN}/tokens/revoke`],
  'GET /projects/:id/provider': CHANGE_PROJECT,
  'POST /projects/:id/provider': CHANGE_PROJECT,
  'GET /projects/:id/restrict': CHANGE_PROJECT,
  'POST /projects/:id/restrict': CHANGE_PROJECT,
  'GET /projects/:id/budget': CHANGE_PROJECT,
  'POST /projects/:id/budget': CHANGE_PROJECT,
  'GET /tokens': READ_TOKENS,
  'POST /tokens': READ_TOKENS,
  'GET /tokens/export': READ_TOKENS,
  'GET /tokens/new': ISSUE,
  'POST /tokens/new': ISSUE,
  'GET /tokens/:id/secret': ISSUE,
  'POST /tokens/marked': REVOKE,
  'GET /batches/:id/undo': UNDO,
  'POST /batches/:id/undo': UNDO,
  'GET /tokens/:id': ['GET', '/manage/tokens/:token'],
  'GET /tokens/:id/revoke': REVOKE,
  'POST /tokens/:id/revoke': REVOKE,
  'GET /tokens/:id/reactivate': CHANGE_TOKEN,
  'POST /tokens/:id/reactivate': CHANGE_TOKEN,
  'GET /tokens/:id/restrict': RESTRICT,
  'POST /tokens/:id/restrict': RESTRICT,
  'GET /tokens/:id/budget': RESTRICT,
  'POST /tokens/:id/budget': RESTRICT,
  'GET /top': ['GET', '/manage/top'],
  'GET /top/export': ['GET', '/manage/top'],
  'GET /usage': ['GET', '/manage/usage'],
  'GET /usage/export': ['GET', '/manage/usage'],
  'GET /events': READ_EVENTS,
  'POST /events': READ_EVENTS,
  'GET /events/stream': READ_EVENTS,
  'GET /audit': READ_AUDIT,
  'POST /audit': READ_AUDIT,
  'GET /audit/export': READ_AUDIT,
  'GET /audit/:id': READ_AUDIT,
  'GET /cache': PURGE,
  'GET /cache/purge': PURGE,
  'POST /cache/purge': PURGE,
  'GET /cache/purge?what=all': ['POST', '/manage/cache/purge', { all: true, dry_run: true }],
  'GET /cache/purge?what=resource': [
    'POST',
    '/manage/cache/purge',
    { method: 'GET', url: '/v1/models', dry_run: true },
  ],
  'GET /operators': OPERATORS,
  'GET /operators/new': OPERATORS,
  'POST /operators/new': OPERATORS,
  'GET /operators/:id/secret': OPERATORS,
  'GET /operators/:id': OPERATORS,
  'GET /operators/:id/change': OPERATORS,
  'POST /operators/:id/change': OPERATORS,
  'GET /operators/:id/deactivate': OPERATORS,
  'POST /operators/:id/deactivate': OPERATORS,
  'GET /operators/:id/reactivate': OPERATORS,
  'POST /operators/:id/reactivate': OPERATORS,
  'GET /trusts': TRUSTS,
  'GET /trusts/new': TRUSTS,
  'POST /trusts/new': TRUSTS,
  'GET /trusts/:id': TRUSTS,
  'GET /trusts/:id/change': TRUSTS,
  'POST /trusts/:id/change': TRUSTS,
  'GET /trusts/:id/activate': TRUSTS,
  'POST /trusts/:id/activate': TRUSTS,
  'GET /trusts/:id/deactivate': TRUSTS,
  'POST /trusts/:id/deactivate': TRUSTS,
  'GET /trusts/:id/delete': TRUSTS,
  'POST /trusts/:id/delete': TRUSTS,
};

/** Reached without a link: after a secret was made. */
const NOT_LINKED = ['GET /tokens/:id/secret', 'GET /operators/:id/secret'];
/** The undo of a batch is offered where its audit records are, and after a change of many tokens, which this test does not make. */
const AFTER_A_CHANGE = ['GET /batches/:id/undo', 'POST /batches/:id/undo'];
/** The first page of an issuer is its own. */
const OF_ISSUERS = ['POST /'];

const PATTERNS = ROUTES.map(({ method, path }) => ({
  method,
  name: `${method} ${path}`,
  pattern: new RegExp(`^${path.replace(/:id/g, '[^/]+')}$`),
}));

const routeOf = (method: string, to: string) =>
  PATTERNS.find((it) => it.method === method && it.pattern.test(`/${to.replace(/[?#].*$/, '')}`))?.name;

/** The addresses of the links and forms of a page, relative to the base. */
function offeredIn(html: string): { method: 'GET' | 'POST'; to: string }[] {
  const plain = (text: string) => text.replaceAll('&amp;', '&').replace('/admin/', '');
  const all = (pattern: RegExp) => [...html.matchAll(pattern)].map(([, to = '']) => plain(to));
  const forms = [...html.matchAll(/<form [^>]*action="(\/admin\/[^"]*)" method="(get|post)"(.*?)<\/form>/gs)];
  return [
    ...all(/<a href="(\/admin\/[^"]*)"/g).map((to) => ({ method: 'GET', to }) as const),
    ...all(/data-stream="(\/admin\/[^"]*)"/g).map((to) => ({ method: 'GET', to }) as const),
    ...forms.map(([, to = '', method, fields = '']) => {
      const what = /name="what" value="(\w+)"/.exec(fields)?.[1];
      return method === 'post'
        ? ({ method: 'POST', to: plain(to) } as const)
        : ({ method: 'GET', to: plain(to) + (what === undefined ? '' : `?what=${what}`) } as const);
    }),
  ];
}

/** Pages that are looked at, of those with the same route. There are two tokens and two projects, in different states. */
const MAX_VISITED = 3;

/** Follows all links from the first page, and from the newest tokens, which are the user's own. @param fields of the forms whose target depends on them. @returns the routes that pages link to or have a form for. */
async function offeredTo(browser: TestBrowser, fields: string): Promise<Set<string>> {
  const offered = new Set<string>();
  const visited = new Map<string, Set<string>>();
  const waiting = ['tokens', ''];
  for (let to = waiting.shift(); to !== undefined; to = waiting.shift()) {
    const name = routeOf('GET', to)!;
    // Queries lead to the same pages, but a batch has an action of its own.
    const key = to.includes('batch=') ? 'batch' : to.includes('what=') ? to : to.replace(/\?.*$/, '');
    const seen = visited.get(name) ?? new Set<string>();
    if (seen.has(key) || seen.size >= MAX_VISITED) continue;
    visited.set(name, seen.add(key));
    if (/stream$|export$/.test(key)) continue;
    const { status, html } = await browser.get(to.includes('what=') ? to + fields : to);
    // The audit log names what was not found, too.
    expect(status, `${to} is offered`).to.be.oneOf(to.includes(UNKNOWN) ? [404] : [200, 400]);
    for (const offer of offeredIn(html)) {
      const route = routeOf(offer.method, offer.to);
      if (route === undefined) continue;
      offered.add(route);
      // Of some forms, it depends on the fields.
      offered.add(route + (/\?what=\w+$/.exec(offer.to)?.[0] ?? ''));
      if (offer.method === 'GET') waiting.push(offer.to);
    }
  }
  return offered;
}

describe('what the Admin UI offers', function () {
  this.timeout(60_000);
  let daemon: TestDaemon;
  let project: string;
  let inactive: string;
  let operators = 0;

  before(async () => {
    daemon = await startDaemon({ env: { HTTP_CACHE_ENABLED: 'true' } });
    project = (await daemon.createProject({ name: 'web' })).id;
    inactive = (await daemon.createProject({ name: 'old' })).id;
    await daemon.createProject({ name: 'of others' });
    await daemon.manage('PATCH', `/manage/projects/${inactive}`, { is_active: false });
    for (const isActive of [true, false]) {
      const trust = {
        issuer: 'https://token.actions.githubusercontent.com',
        audience: 'llmp',
        match: { repository: `acme/${isActive}` },
        project_id: project,
        duration_minutes: 30,
      };
      const created = await daemon.manage('POST', '/manage/trusts', trust);
      expect(created.status).to.equal(201);
      const path = `/manage/trusts/${(created.body as { id: string }).id}`;
      if (!isActive) await daemon.manage('PATCH', path, { is_active: false });
    }
  });
  after(() => daemon.stop());

  it('is compared with a request to the API for each of its routes', () => {
    expect(Object.keys(ASKS).filter((name) => !name.includes('?'))).to.have.members(PATTERNS.map(({ name }) => name));
  });

  const users: (readonly [role: Role | null, isLimited: boolean])[] = [
    [null, false],
    ...ROLES.map((role) => [role, false] as const),
    ['operator', true],
    ['admin', true],
  ];
  for (const [role, isLimited] of users) {
    const who = role === null ? 'the management token' : `the role ${role}${isLimited ? ' for some projects' : ''}`;
    it(`is what the API allows to ${who}`, async () => {
      const secret = role === null ? MANAGEMENT_TOKEN : await operatorWith(role, isLimited);
      const authorization = { authorization: `Bearer ${secret}` };
      // Tokens of its own, if it may issue some.
      const issuing = ['issuer', 'operator', 'admin'].includes(role ?? 'admin') ? authorization : {};
      const batch = crypto.randomUUID();
      const tokens = await Promise.all(
        ['active', 'revoked', 'revoked too'].map(async (name) => {
          const issued = daemon.manage('POST', '/manage/tokens', { project_id: project, name }, issuing);
          const { id, token } = await bodyOf<WireTokenCreated>(issued, 201);
          await (await daemon.call(token)).text();
          return id;
        }),
      );
      daemon.daemon.scheduler.publishAll();
      for (const id of tokens.slice(1))
        await daemon.manage('DELETE', `/manage/tokens/${id}`, undefined, { 'x-audit-batch': batch });
      if (role === null) for (const isInactive of [true, false]) await operatorWith('viewer', false, isInactive);
      const browser = new TestBrowser(daemon.managementUrl);
      await browser.logIn(secret);

      const offered = await offeredTo(browser, purgeFields());
      const found: Record<string, unknown> = {};
      const expected: Record<string, unknown> = {};
      for (const [name, [method, path, body]] of Object.entries(ASKS)) {
        const [at = '', sending] = [path, JSON.stringify(body ?? {})].map((text) =>
          text.replace(':project', project).replace(':token', tokens[0]!),
        );
        const isAllowed =
          (await daemon.manage(method, at, method === 'GET' ? undefined : sending, authorization)).status !== 403;
        expected[name] = { page: isAllowed, offered: isOffered(name, role, isAllowed) };
        found[name] = { page: (await sent(browser, name, tokens[0]!)) !== 403, offered: offered.has(name) };
        if (NOT_LINKED.includes(name)) found[name] = { ...(found[name] as object), offered: isAllowed };
      }
      expect(found).to.deep.equal(expected);
    });
  }

  function isOffered(name: string, role: Role | null, isAllowed: boolean): boolean {
    if (OF_ISSUERS.includes(name)) return role === 'issuer';
    if (AFTER_A_CHANGE.includes(name)) return isAllowed && (role === null || role === 'admin');
    return isAllowed;
  }

  const purgeFields = () => `&method=GET&url=%2Fv1%2Fmodels&project_id=${project}`;

  async function operatorWith(role: Role, isLimited: boolean, isInactive = false): Promise<string> {
    const body = { name: `user ${++operators}`, role, projects: isLimited ? [project, inactive] : null };
    const created = await daemon.manage('POST', '/manage/operators', body);
    expect(created.status).to.equal(201);
    const { id, secret } = created.body as { id: string; secret: string };
    if (isInactive) await daemon.manage('DELETE', `/manage/operators/${id}`);
    return secret;
  }

  /** Requests a route, and changes nothing: the API takes no reason of this length. @returns the status. */
  async function sent(browser: TestBrowser, name: string, token: string): Promise<number> {
    const [method = '', path = ''] = name.split(' ');
    const id = path.startsWith('/projects') ? project : path.startsWith('/tokens') ? token : UNKNOWN;
    const to = path.slice(1).replace(':id', id);
    if (method === 'POST') return (await browser.post(to, { reason: 'x'.repeat(300) })).status;
    if (!to.endsWith('stream')) return (await browser.get(to.includes('what=') ? to + purgeFields() : to)).status;
    const stream = await browser.openStream(to);
    await stream.body?.cancel();
    return stream.status;
  }
});
