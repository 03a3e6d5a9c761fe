/** Each command that uses the management API, tried by each role on what is its own and what is not, and compared with PERMISSIONS. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { wholeTree } from '../../cli/commands.js';
import { type Extent, extentOf, type Permission } from '../../daemon/api/permissions.js';
import type { WireAuditRecord } from '../../daemon/api/contract.js';
import { EXIT } from '../../console/failure.js';
import type { AuditAction } from '../../daemon/api/vocabulary.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { bodyOf } from '../support/management.js';
import { perSuite } from '../support/per-test.js';
import { type RoleCaller, RoleScene, type Subject, traceOf } from '../support/role-scene.js';
import { type Captured, llmp, type Situation } from './captured.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

/** A command line, and what must come of it. */
interface Cell {
  line: (of: Subject) => string;
  /** Of what it needs, in this order, the first that the role lacks is named. */
  needs: readonly [Permission, ...Permission[]];
  stdin?: (of: Subject) => string;
  /** The last change that is recorded; without it nothing may be changed. */
  does?: AuditAction;
  /** Of what is the caller's, in the output as JSON. */
  shows?: (of: Subject) => string;
  /** What is not the caller's is unknown, or left out. Without it the command is about neither a project nor a token. */
  foreign?: 'unknown' | 'left out';
  /** Whether it is about a project: each issuer sees its projects. */
  isOfProject?: boolean;
  /** It runs until ^C. */
  isStream?: boolean;
}

const ofToken = { foreign: 'unknown' } as const;
const ofProject = { foreign: 'unknown', isOfProject: true } as const;
const listed = { foreign: 'left out', shows: ({ token }: Subject) => token.id } as const;
const token = ({ token: { id } }: Subject) => id;
const project = ({ project: { id } }: Subject) => id;
const nothing = (line: string) => () => line;
const manageAccess = (line: string): [Cell] => [{ line: nothing(line), needs: ['manage access'] }];

let made = 0;

/** In this order: what revokes comes after what needs an active token. */
const CELLS: Readonly<Record<string, readonly Cell[]>> = {
  status: [{ line: nothing('status'), needs: ['read the status'] }],
  whoami: [{ line: nothing('whoami'), needs: ['know the API'] }],
  'project list': [{ line: nothing('project list'), needs: ['read projects'], foreign: 'left out', shows: project }],
  'project get': [
    { line: (of) => `project get ${project(of)}`, needs: ['read projects'], ...ofProject, shows: project },
  ],
  'token list': [{ line: nothing('token list'), needs: ['read tokens'], ...listed }],
  'token get': [{ line: (of) => `token get ${token(of)}`, needs: ['read tokens'], ...ofToken, shows: token }],
  'token whois': [
    { line: nothing('token whois'), needs: ['read tokens'], ...ofToken, shows: token, stdin: (of) => of.token.token },
  ],
  usage: [{ line: nothing('usage --by token,project,model'), needs: ['read usage'], ...listed }],
  top: [{ line: nothing('top token'), needs: ['read usage'], ...listed }],
  'prices list': [{ line: nothing('prices list'), needs: ['read prices'] }],
  'prices check': [
    {
      line: nothing('prices check'),
      needs: ['read usage'],
      foreign: 'left out',
      shows: ({ token: { name } }) => `model-${name ?? ''}`,
    },
  ],
  'prices explain': [{ line: nothing('prices explain gpt-5'), needs: ['read prices'] }],
  'audit list': [{ line: nothing('audit list'), needs: ['read the audit log'], ...listed }],
  'audit export': [{ line: nothing('audit export'), needs: ['read the audit log'], ...listed }],
  'audit tail': [{ line: nothing('audit tail'), needs: ['read the audit log'], ...listed, isStream: true }],
  'events list': [{ line: nothing('events list'), needs: ['read events'], ...listed }],
  'events tail': [{ line: nothing('events tail'), needs: ['read events'], ...listed, isStream: true }],
  'cache stats': [{ line: nothing('cache stats'), needs: ['read the cache'] }],
  'cache purge': [
    {
      line: (of) => `cache purge --project-id ${project(of)} --yes`,
      needs: ['purge the cache'],
      does: 'cache.purge',
      ...ofProject,
    },
    {
      line: nothing('cache purge --all --yes'),
      needs: ['purge the cache', 'purge the whole cache'],
      does: 'cache.purge',
    },
    {
      line: nothing('cache purge --method GET --url /v1/models'),
      needs: ['purge the cache', 'purge the whole cache'],
      does: 'cache.purge',
    },
  ],
  'migrate status': [{ line: nothing('migrate status'), needs: ['read migrations'] }],
  'migrate up': [{ line: nothing('migrate up'), needs: ['read migrations', 'apply migrations'] }],
  'project create': [
    {
      line: () => `project create --name new-${++made} --key-file - --no-check`,
      stdin: () => UPSTREAM_KEY,
      needs: ['create projects'],
      does: 'project.create',
    },
  ],
  'project update': [
    {
      line: (of) => `project update ${project(of)} --rpm ${++made}`,
      needs: ['change projects'],
      does: 'project.update',
      ...ofProject,
    },
  ],
  'project set-key': [
    {
      line: (of) => `project set-key ${project(of)} --key-file - --no-check`,
      stdin: () => UPSTREAM_KEY,
      needs: ['change projects'],
      does: 'project.update',
      ...ofProject,
    },
  ],
  'project check': [{ line: (of) => `project check ${project(of)}`, needs: ['change projects'], ...ofProject }],
  'project deactivate': [
    {
      line: (of) => `project deactivate ${project(of)} --yes`,
      needs: ['change projects'],
      does: 'project.update',
      ...ofProject,
    },
  ],
  'project activate': [
    {
      line: (of) => `project activate ${project(of)}`,
      needs: ['change projects'],
      does: 'project.update',
      ...ofProject,
    },
  ],
  'token generate': [
    {
      line: (of) => `token generate --project-id ${project(of)}`,
      needs: ['issue tokens'],
      does: 'token.create',
      ...ofProject,
    },
    { line: (of) => `token generate --like ${token(of)}`, needs: ['issue tokens'], does: 'token.create', ...ofToken },
    {
      line: (of) => `token generate --query ${of.token.name ?? ''} --yes`,
      needs: ['issue tokens'],
      does: 'token.create',
      foreign: 'left out',
    },
    {
      line: () => 'token generate --from - --yes',
      stdin: (of) => `project\n${project(of)}\n`,
      needs: ['issue tokens'],
      does: 'token.create',
    },
  ],
  'token print': [
    {
      line: (of) => `token print --project-id ${project(of)}`,
      needs: ['issue tokens'],
      does: 'token.create',
      ...ofProject,
    },
  ],
  run: [
    {
      line: (of) => `run --project-id ${project(of)} -- true`,
      needs: ['issue tokens'],
      does: 'token.revoke',
      ...ofProject,
    },
  ],
  'token update': [
    {
      line: (of) => `token update ${token(of)} --rpm ${++made}`,
      needs: ['revoke or change tokens', 'change tokens'],
      does: 'token.update',
      ...ofToken,
    },
  ],
  undo: [{ line: ({ batchId }) => `undo ${batchId} --yes`, needs: ['undo changes'], does: 'token.update', ...ofToken }],
  'token revoke': [
    { line: (of) => `token revoke ${token(of)}`, needs: ['revoke or change tokens'], does: 'token.revoke', ...ofToken },
  ],
  'token reactivate': [
    {
      line: (of) => `token reactivate ${token(of)}`,
      needs: ['revoke or change tokens', 'change tokens'],
      does: 'token.reactivate',
      ...ofToken,
    },
  ],
  'project revoke-tokens': [
    {
      line: (of) => `project revoke-tokens ${project(of)} --yes`,
      needs: ['change tokens'],
      does: 'token.revoke_all',
      ...ofProject,
    },
  ],
  'operator create': manageAccess('operator create --name eve --role admin'),
  'operator list': manageAccess('operator list'),
  'operator show': manageAccess(`operator show ${UNKNOWN}`),
  'operator update': manageAccess(`operator update ${UNKNOWN} --role admin`),
  'operator deactivate': manageAccess('operator deactivate admin-limited'),
  'operator reactivate': manageAccess('operator reactivate admin-limited'),
  'trust create': manageAccess(
    `trust create --issuer https://ci.example.com --audience llmp --match repository=acme/web --project-id ${UNKNOWN} --duration 1h`,
  ),
  'trust list': manageAccess('trust list'),
  'trust show': manageAccess(`trust show ${UNKNOWN}`),
  'trust update': manageAccess(`trust update ${UNKNOWN} --inactive`),
  'trust delete': manageAccess(`trust delete ${UNKNOWN} --yes`),
};

/** Looks for what is not the caller's, by names and what is nearly one, by parts of IDs, and with completion. */
const LOOKS = ({ token: { id, name, obfuscated, token: secret }, project: its, batchId }: Subject): string[][] => {
  const called = name ?? '';
  const ofProject = its.name;
  const [nearly, nearlyProject] = [called.slice(0, -1), ofProject.slice(0, -1)];
  return [
    ...[called, nearly, id.slice(0, 8), obfuscated].flatMap((it) => [
      `token get ${it}`,
      `token list ${it}`,
      `token revoke ${it}`,
      `token generate --like ${it}`,
      `token revoke --query ${it} --yes`,
      `audit list token:${it}`,
      `events list token:${it}`,
      `__complete -- token get ${it}`,
    ]),
    ...[ofProject, nearlyProject, its.id.slice(0, 8)].flatMap((it) => [
      `project get ${it}`,
      `project list ${it}`,
      `token list project:${it}`,
      `token generate --project-id ${it}`,
      `usage --by token,project --project-id ${it}`,
      `top token project:${it}`,
      `audit list project:${it}`,
      `run --project-id ${it} -- true`,
      `__complete -- project get ${it}`,
      `__complete -- token list project:${it}`,
    ]),
    `audit list ${called}`,
    `audit export --search ${called}`,
    `audit list --batch ${batchId}`,
    `top model --by model --window 24h model:${called}`,
    `prices explain model-${called}`,
    ...[
      'token get ',
      'project get ',
      'run --project-id ',
      'undo ',
      'token list by:',
      'token list project:',
      'top --model ',
    ].map((line) => `__complete -- ${line}`),
    // What was issued to somebody else cannot be found by its secret.
    `token list ${secret}`,
  ].map((line) => line.split(' '));
};

/** They use no management API, or only to log in and out, or are tried elsewhere: for the terminal UI see test/tui/permitted.test.ts. */
const OTHERS = [
  ...['daemon', 'dispatcher', 'admin', 'tui', 'demo', 'help', 'version', 'man', 'completion', 'init', 'doctor'],
  ...['config show', 'config validate', 'context list', 'context use', 'context add', 'context remove'],
  ...['token exchange', 'self', 'connect', 'login', 'logout', 'audit verify'],
  ...['migrate rekey', 'migrate copy', 'backup', 'restore'],
];

/** What a caller may do; null: nothing. */
function extentFor({ role, isLimited }: RoleCaller, permission: Permission): Extent | null {
  const extent = extentOf(role, permission);
  return extent === 'instance' && isLimited ? null : extent;
}

/** One who is limited to some projects, and one who is not if that makes a difference. */
const callersOf = ({ callers }: RoleScene, { needs }: Cell) =>
  callers.filter(
    ({ role, isLimited }) => isLimited || needs.some((one) => ['instance', 'own'].includes(extentOf(role, one) ?? '')),
  );

/** Whether it can be about what is not the caller's: a list leaves all of that out at once, and each issuer sees its projects. */
function isOfAnother({ foreign, isOfProject, line, stdin }: Cell, of: Subject, own: Subject): boolean {
  if (foreign === undefined || (isOfProject && of.project === own.project)) return false;
  return line(of) !== line(own) || stdin?.(of) !== stdin?.(own);
}

/** The sentence for a person whose role does not allow it; null if it does. */
function refusalFor(caller: RoleCaller, { needs }: Cell): string | null {
  const { role } = caller;
  const lacking = needs.find((one) => extentFor(caller, one) === null);
  if (lacking === undefined) return null;
  const why =
    extentOf(role, lacking) === null
      ? `the role ${role} may not ${lacking}`
      : 'it concerns all projects and tokens, and you may not see all of them';
  return `llmp: not permitted: ${why}\n  See your role: llmp whoami. The holder of the management token can change it\n`;
}

describe('commands of each role', function () {
  this.timeout(60_000);
  const scene = perSuite(() => RoleScene.open());
  // Not folders of `temporaryFolder`, where no secrets may be.
  const runtime = new Map<RoleCaller, string>();
  after(() => {
    for (const folder of runtime.values()) rmSync(folder, { recursive: true });
  });

  const by = (caller: RoleCaller, line: string | readonly string[], situation: Situation = {}): Promise<Captured> => {
    const folder = runtime.get(caller) ?? mkdtempSync(join(tmpdir(), 'llmp-runtime-'));
    runtime.set(caller, folder);
    const { url, clock } = scene.daemon;
    const env = { LLMP_SERVER: url, MANAGEMENT_TOKEN: caller.operator.secret, XDG_RUNTIME_DIR: folder, HOME: folder };
    return llmp(line, { env: { ...env, PATH: process.env.PATH }, nowMs: () => clock.now(), ...situation });
  };

  async function tried(
    caller: RoleCaller,
    { line, stdin, isStream }: Cell,
    of: Subject,
    format = '',
  ): Promise<Captured> {
    const words = `${line(of)}${format}`;
    if (!isStream) return by(caller, words, stdin ? { stdin: stdin(of) } : {});
    let press: (value?: unknown) => void = () => undefined;
    let shown = '';
    const running = by(caller, words, {
      interrupted: new Promise((resolve) => (press = resolve)),
      onOut: (text) => (shown += text),
    });
    let isOver = false;
    void running.then(() => (isOver = true));
    await eventually('the stream shows a change of the caller, or is refused', async () => {
      for (const subject of [...Object.values(caller.foreign), caller.own])
        await scene.daemon.manage('PATCH', `/manage/tokens/${subject.token.id}`, { limits: { concurrent: ++made } });
      return isOver || shown.includes(caller.own.token.id);
    });
    press();
    return running;
  }

  const lastChange = async () => {
    const [record] = await bodyOf<WireAuditRecord[]>(
      scene.daemon.manage('GET', '/manage/audit?outcome=success&limit=1'),
    );
    return record!;
  };

  it('are all that there are', async () => {
    const all = (await wholeTree()).commands.map(({ path }) => path.join(' '));
    expect([...Object.keys(CELLS), ...OTHERS]).to.have.members(all);
  });

  for (const [name, cells] of Object.entries(CELLS)) {
    it(`${name}: what the table of roles allows, and nothing else`, async () => {
      for (const cell of cells) {
        for (const caller of callersOf(scene, cell)) {
          const { own, foreign } = caller;
          for (const [whose, of] of Object.entries({ own, ...foreign }))
            if (of === own || isOfAnother(cell, of, own)) await expectCell(cell, caller, of, whose);
        }
      }
    });
  }

  async function expectCell(cell: Cell, caller: RoleCaller, of: Subject, whose: string): Promise<void> {
    const isForeign = of !== caller.own;
    const refusal = refusalFor(caller, cell);
    const before = await lastChange();
    const { exitCode, out, err } = await tried(caller, cell, of);
    const after = await lastChange();
    const who = `${caller.operator.name}, ${whose}: llmp ${cell.line(of)}\n${out}${err}`;
    if (isForeign && cell.foreign === 'unknown') {
      // Of what one may not see, it may be said first that it does not exist.
      expect(exitCode, who).to.be.oneOf(refusal === null ? [EXIT.notFound] : [EXIT.notFound, EXIT.refused]);
    } else if (refusal === null || isForeign) {
      expect(exitCode, who).to.equal(cell.isStream ? EXIT.interrupted : EXIT.done);
    } else {
      expect({ exitCode, err }, who).to.deep.equal({ exitCode: EXIT.refused, err: refusal });
      expect(out, who).not.to.include(token(of));
    }
    // What the command line names was known before.
    expect((out + err).replaceAll(token(of), '').replaceAll(project(of), ''), who).not.to.match(traceOf(caller));
    if (refusal === null && !isForeign && cell.does !== undefined) {
      expect([after.action, after.actor], who).to.deep.equal([cell.does, `operator:${caller.operator.name}`]);
      expect(after.id, who).not.to.equal(before.id);
      return;
    }
    // The stream has waited for changes.
    if (!cell.isStream) expect(after, who).to.deep.equal(before);
    if (refusal !== null || isForeign) return;
    const machine = await tried(caller, cell, of, ' -o json');
    if (cell.shows) expect(machine.out, who).to.include(cell.shows(of));
    expect(machine.out + machine.err, who).not.to.match(traceOf(caller));
  }

  it("tell nothing of what is not the caller's in messages, suggestions, completions and exports", async () => {
    for (const caller of scene.callers) {
      for (const of of Object.values(caller.foreign)) {
        for (const words of LOOKS(of)) {
          const isCompletion = words[0] === '__complete';
          const { out, err } = await by(caller, isCompletion ? words : [...words, '-o', 'json']);
          // What is asked for may be repeated.
          const told = words.reduce((text, word) => (word === '' ? text : text.replaceAll(word, '')), out + err);
          expect(told, `${caller.operator.name}: ${words.join(' ')}`).not.to.match(traceOf(caller));
        }
      }
    }
  });
});
