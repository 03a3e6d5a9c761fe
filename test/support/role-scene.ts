/** Callers of every role, what is theirs, and what is not: for tests of what each may do and see. */
import { type Role, ROLES } from '../../daemon/api/vocabulary.js';
import type { WireAuditRecord, WireOperator, WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import type { Environment } from '../../config/settings.js';
import { canaryEncryptionKey } from './canaries.js';
import { MANAGEMENT_TOKEN, startDaemon, type TestDaemon, type TestResponse } from './daemon.js';
import { DatabaseServer, type ServerKind, WITHOUT } from './database-servers.js';
import { perSuite } from './per-test.js';
import { eventually } from './eventually.js';
import { type Provider, startProvider } from './provider.js';

/** What a request may be about. */
export interface Subject {
  project: WireProject;
  token: WireTokenCreated;
  /** IDs of an audit record, a batch of a change of the token, and a session. */
  recordId: string;
  batchId: string;
  sessionId: string;
}

export interface RoleCaller {
  role: Role;
  /** Limited to the project `mine`, or without a list of projects. */
  isLimited: boolean;
  operator: WireOperator & { secret: string };
  own: Subject;
  /** What is not in scope, by why. */
  foreign: Record<string, Subject>;
}

let made = 0;
const someId = () => `00000000-0000-4000-9000-${String((made += 1)).padStart(12, '0')}`;

/** Settings of a daemon with a database of this kind; null: SQLite. */
async function databaseEnvironment(kind: ServerKind | null): Promise<Environment> {
  if (kind === null) return {};
  const server = await DatabaseServer.shared(kind);
  return { DB_DRIVER: kind, DATABASE_URL: await server.newDatabase(), ENCRYPTION_KEY: canaryEncryptionKey() };
}

/**
 * The projects `mine` and `foreign`, and tokens in them, of the holder of the management token and of each issuer. Each token was used for
 * a model of its name without a price, and failed often enough to be an incident.
 */
export class RoleScene {
  daemon!: TestDaemon;
  provider!: Provider;
  mine!: WireProject;
  foreign!: WireProject;
  callers: RoleCaller[] = [];
  #uses = 0;

  static async open(kind: ServerKind | null = null): Promise<RoleScene> {
    const scene = new RoleScene();
    scene.provider = await startProvider();
    scene.daemon = await startDaemon({ upstream: scene.provider.url, env: await databaseEnvironment(kind) });
    scene.mine = await scene.daemon.createProject({ name: 'mine' });
    scene.foreign = await scene.daemon.createProject({ name: 'hidden-project' });
    const foreign = await scene.#subject(scene.foreign, 'hidden-by-project');
    const others = await scene.#subject(scene.mine, 'of-others');
    for (const role of ROLES) {
      for (const isLimited of [true, false]) {
        const name = `${role}-${isLimited ? 'limited' : 'unlimited'}`;
        const operator = await scene.operator(name, role, isLimited ? [scene.mine.id] : null);
        const own =
          role === 'issuer'
            ? await scene.#subject(scene.mine, `own-of-${name}`, operator.secret)
            : await scene.#subject(scene.mine, `for-${name}`);
        own.sessionId = await scene.session(operator.secret);
        scene.callers.push({
          role,
          isLimited,
          operator,
          own,
          foreign: {
            ...(isLimited && { 'of another project': foreign }),
            ...(role === 'issuer' && { 'of another issuer': others }),
          },
        });
      }
    }
    await scene.#useAll([foreign, others, ...scene.callers.map(({ own }) => own)].map(({ token }) => token));
    return scene;
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    await this.provider.stop();
  }

  caller(role: Role, isLimited = true): RoleCaller {
    return this.callers.find((one) => one.role === role && one.isLimited === isLimited)!;
  }

  /** A request with the secret of a caller. */
  ask(
    secret: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<TestResponse> {
    return this.daemon.manage(method, path, body, { authorization: `Bearer ${secret}`, ...headers });
  }

  async operator(
    name: string,
    role: Role,
    projects: readonly string[] | null,
  ): Promise<WireOperator & { secret: string }> {
    return this.#made('/manage/operators', { name, role, projects });
  }

  async session(secret: string): Promise<string> {
    return (await this.#made<{ id: string }>('/manage/sessions', { token: secret })).id;
  }

  /** A token that was changed in a batch, with the rest that belongs to it. */
  async #subject(project: WireProject, name: string, issuer = MANAGEMENT_TOKEN): Promise<Subject> {
    const token = await this.#made<WireTokenCreated>('/manage/tokens', { project_id: project.id, name }, issuer);
    const batchId = someId();
    await this.daemon.manage(
      'PATCH',
      `/manage/tokens/${token.id}`,
      { allow: { routes: ['all'] } },
      { 'x-audit-batch': batchId },
    );
    const records = (await this.daemon.manage('GET', `/manage/audit?token_id=${token.id}`)).body as WireAuditRecord[];
    return { project, token, recordId: records[0]!.id, batchId, sessionId: await this.session(MANAGEMENT_TOKEN) };
  }

  async #made<T>(path: string, body: object, secret = MANAGEMENT_TOKEN): Promise<T> {
    const answer = await this.ask(secret, 'POST', path, body);
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  }

  async #useAll(tokens: readonly WireTokenCreated[]): Promise<void> {
    for (const status of [200, 500, 500, 500]) {
      for (const { token, name } of tokens) {
        const model = `model-${name ?? ''}`;
        this.provider.answer = (_req, res) => {
          const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
          const body = status === 200 ? { object: 'chat.completion', model, choices: [], usage } : {};
          res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
        };
        const body = JSON.stringify({ model, messages: [] });
        const answer = await this.daemon.call(token, '/v1/chat/completions', { method: 'POST', body });
        if (answer.status !== status) throw new Error(`${status}: ${await answer.text()}`);
        this.#uses += 1;
      }
    }
    this.provider.answer = undefined;
    await eventually('all have ended', () => this.daemon.ended.length === this.#uses);
  }
}

/** Whatever in a response would tell that something out of scope exists. */
export function traceOf({ foreign, isLimited }: RoleCaller): RegExp {
  const traces = Object.values(foreign).flatMap(({ project, token, recordId, sessionId }) => [
    ...[token.id, token.name, token.obfuscated, token.token, recordId, sessionId],
    ...(isLimited && project.name === 'hidden-project' ? [project.id, project.name] : []),
  ]);
  return new RegExp(traces.length === 0 ? '$^' : traces.join('|'));
}

/** A suite with a scene on each kind of database that is installed. */
export function describeOnDatabases(title: string, suite: (scene: RoleScene) => void): void {
  for (const [kind, name] of [
    [null, 'SQLite'],
    ['postgres', 'PostgreSQL'],
    ['mysql', 'MariaDB'],
  ] as const) {
    const without = kind === null ? '' : WITHOUT[kind];
    describe(`${title} on ${name}${without}`, function () {
      this.timeout(60_000);
      before(function () {
        if (without) this.skip();
      });
      suite(perSuite(() => RoleScene.open(kind)));
    });
  }
}
