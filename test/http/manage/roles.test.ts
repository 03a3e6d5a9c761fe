/** The table of roles, each cell tried over HTTP, and attempts to get around it. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { canSucceed, type Operation } from '../../../daemon/api/operation.js';
import { type Operations, operations } from '../../../daemon/api/operations.js';
import { type Extent, extentOf } from '../../../daemon/api/permissions.js';
import { ROLES } from '../../../daemon/api/vocabulary.js';
import { foreignOf, rolesPage } from '../../../daemon/http/manage/roles-page.js';
import { MANAGEMENT_TOKEN, type TestResponse, UPSTREAM_KEY } from '../../support/daemon.js';
import {
  describeOnDatabases,
  type RoleCaller,
  type RoleScene,
  type Subject,
  traceOf,
} from '../../support/role-scene.js';

const ROOT = resolve(import.meta.dirname, '../../../..');
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

/** What a request of an operation is about, and what its response then contains. */
interface Attempt {
  about: 'project' | 'token' | 'record' | 'batch' | 'session' | 'nothing';
  id?: (of: Subject) => string;
  query?: (of: Subject) => string;
  body?: (of: Subject) => unknown;
  shows?: (of: Subject) => string;
}

let names = 0;
const ofProject: Attempt = { about: 'project', id: ({ project }) => project.id };
const ofToken: Attempt = { about: 'token', id: ({ token }) => token.id };
const ofSession: Attempt = { about: 'session', id: ({ sessionId }) => sessionId };
const ofNothing: Attempt = { about: 'nothing' };
const ofAccess: Attempt = { about: 'nothing', id: () => UNKNOWN_ID };
const tokenShown = ({ token }: Subject) => token.id;
const modelShown = ({ token }: Subject) => `model-${token.name ?? ''}`;

const ATTEMPTS: Record<keyof Operations, Attempt> = {
  createProject: { about: 'nothing', body: () => ({ name: `new ${++names}`, api_key: UPSTREAM_KEY }) },
  listProjects: { about: 'project', shows: ({ project }) => project.id },
  readProject: ofProject,
  updateProject: { ...ofProject, body: () => ({ is_active: true }) },
  deleteProject: ofProject,
  revokeTokensOfProject: ofProject,
  checkProject: ofProject,
  createToken: { about: 'project', body: ({ project }) => ({ project_id: project.id }) },
  listTokens: { about: 'token', query: () => 'limit=200', shows: tokenShown },
  lookUpToken: { about: 'token', body: ({ token }) => ({ token: token.token }) },
  readToken: ofToken,
  updateToken: { ...ofToken, body: () => ({ is_active: false }) },
  revokeToken: ofToken,
  readUsage: { about: 'token', query: () => 'by=token,project,model', shows: tokenShown },
  readTop: { about: 'token', query: () => 'by=token&limit=200', shows: tokenShown },
  listPrices: ofNothing,
  checkPrices: { about: 'token', shows: modelShown },
  explainPrice: { about: 'project', query: ({ project }) => `model=gpt-5&project_id=${project.id}` },
  listAudit: { about: 'token', query: ({ token }) => `limit=200&q=${token.name ?? ''}`, shows: tokenShown },
  followAudit: { about: 'token', shows: tokenShown },
  readAuditRecord: { about: 'record', id: ({ recordId }) => recordId },
  undoBatch: { about: 'batch', id: ({ batchId }) => batchId, body: () => ({}) },
  listEvents: { about: 'token', query: () => 'limit=200', shows: tokenShown },
  streamEvents: { about: 'token', shows: tokenShown },
  readCache: ofNothing,
  purgeCache: { about: 'project', body: ({ project }) => ({ project_id: project.id }) },
  readIncidents: { about: 'project', shows: ({ project }) => project.id },
  readStatus: ofNothing,
  readMigrations: ofNothing,
  migrateUp: ofNothing,
  logIn: { about: 'nothing', body: () => ({ token: 'typed' }) },
  readSession: ofSession,
  logOut: ofSession,
  readSelf: ofNothing,
  createOperator: { about: 'nothing', body: () => ({ name: `more ${++names}`, role: 'admin' }) },
  listOperators: ofNothing,
  readOperator: ofAccess,
  updateOperator: { ...ofAccess, body: () => ({ role: 'admin' }) },
  deactivateOperator: ofAccess,
  createTrust: ofNothing,
  listTrusts: ofNothing,
  readTrust: ofAccess,
  updateTrust: { ...ofAccess, body: () => ({ is_active: false }) },
  deleteTrust: ofAccess,
  readLogin: ofNothing,
  beginWebLogin: ofNothing,
  finishWebLogin: { about: 'nothing', body: () => ({ state: 's', query: 'code=c' }) },
  beginDeviceLogin: ofNothing,
  finishDeviceLogin: { about: 'nothing', body: () => ({ device_code: 'd' }) },
  describeApi: ofNothing,
};

/** What a caller may do with an operation; null: nothing. A caller who is limited to some projects may do nothing that concerns all. */
function extentFor({ role, isLimited }: RoleCaller, { permission }: Operation): Extent | null {
  const extent = extentOf(role, permission);
  return extent === 'instance' && isLimited ? null : extent;
}

/** Those whose cell of the table they show: one who is limited, and one who is not if that makes a difference. */
const callersOf = (scene: RoleScene, { permission }: Operation) =>
  scene.callers.filter(
    ({ role, isLimited }) => isLimited || ['instance', 'own'].includes(extentOf(role, permission) ?? ''),
  );

describeOnDatabases('roles', (scene) => {
  const ask = async (caller: RoleCaller, operation: Operation, attempt: Attempt, of: Subject) => {
    const { method, path, stream } = operation;
    const query = attempt.query?.(of);
    const to = path.replace('{id}', attempt.id?.(of) ?? '') + (query === undefined ? '' : `?${query}`);
    const isOwnSession = attempt.about === 'session' && of === caller.own;
    const [secret, headers] = isOwnSession
      ? [MANAGEMENT_TOKEN, { 'x-llmp-session': of.sessionId }]
      : [caller.operator.secret, {}];
    if (stream && extentFor(caller, operation) !== null) return followed(caller, to);
    return scene.ask(secret, method, to, attempt.body?.(of), headers);
  };

  /** The beginning of a stream, up to a change of a token of the caller. Tokens that are foreign were changed before. */
  async function followed({ operator, own, foreign }: RoleCaller, path: string): Promise<TestResponse> {
    const leaving = new AbortController();
    const response = await fetch(scene.daemon.managementUrl + path, {
      headers: { authorization: `Bearer ${operator.secret}` },
      signal: leaving.signal,
    });
    for (const { token } of [...Object.values(foreign), own]) {
      await scene.daemon.manage('PATCH', `/manage/tokens/${token.id}`, {
        allow: { routes: ['all', `GET /v1/${++names}`] },
      });
    }
    let text = '';
    const decoder = new TextDecoder();
    for await (const piece of response.body! as AsyncIterable<Uint8Array>) {
      text += decoder.decode(piece);
      if (text.includes(own.token.id)) break;
    }
    leaving.abort();
    return { status: response.status, headers: response.headers, body: text };
  }

  const problem = ({ status, body }: TestResponse) => [status, (body as { code?: string } | null)?.code];

  for (const [id, operation] of Object.entries<Operation>(operations)) {
    const attempt = ATTEMPTS[id as keyof Operations];

    it(`${id}: what is the caller's`, async () => {
      for (const caller of callersOf(scene, operation)) {
        const answer = await ask(caller, operation, attempt, caller.own);
        const who = `${caller.operator.name}: ${JSON.stringify(answer.body)}`;
        const extent = extentFor(caller, operation);
        if (extent === null) expect(problem(answer), who).to.deep.equal([403, 'not_permitted']);
        else if (operation.permission === 'public') expect(answer.status, who).not.to.be.oneOf([401, 403]);
        else if (!canSucceed(operation)) expect(answer.status, who).to.equal(405);
        else expect(answer.status, who).to.equal(operation.status ?? 200);
        if (extent === null || operation.permission === 'public') continue;
        const shown = JSON.stringify(answer.body);
        if (attempt.shows) expect(shown, who).to.include(attempt.shows(caller.own));
        if (extent !== 'all') expect(shown, who).not.to.match(traceOf(caller));
      }
    });

    const foreign = foreignOf(operation);
    if (foreign === null || !canSucceed(operation)) continue;
    it(`${id}: what is not: ${foreign === 'absent' ? 'left out' : '404, as if it did not exist'}`, async () => {
      for (const caller of callersOf(scene, operation)) {
        for (const [why, subject] of Object.entries(caller.foreign)) {
          // Each issuer may see its projects.
          if (why === 'of another issuer' && attempt.about === 'project') continue;
          const answer = await ask(caller, operation, attempt, subject);
          const who = `${caller.operator.name}, ${why}: ${JSON.stringify(answer.body)}`;
          if (extentFor(caller, operation) === null) {
            expect(problem(answer), who).to.deep.equal([403, 'not_permitted']);
          } else if (foreign === 'absent') {
            expect(answer.status, who).to.equal(200);
            expect(JSON.stringify(answer.body), who).not.to.match(traceOf(caller));
          } else {
            expect(problem(answer), who).to.deep.equal([404, 'not_found']);
          }
        }
      }
    });
  }
});

describe('docs/reference/roles.md', () => {
  it('is up to date: run `npm run docs`', () => {
    expect(readFileSync(join(ROOT, 'docs/reference/roles.md'), 'utf8')).to.equal(rolesPage());
  });

  it('has a row for each operation, and a column for each role', () => {
    const rows = rolesPage().split('\n');
    for (const operation of Object.values<Operation>(operations).filter(canSucceed)) {
      const [row, ...more] = rows.filter((line) => line.includes(`\`${operation.method} ${operation.path}\``));
      expect(more, operation.path).to.deep.equal([]);
      expect(row?.split(' | '), operation.path).to.have.length(ROLES.length + 2);
    }
  });
});
