import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync, readFileSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { WireAuditRecord, WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { createLog } from '../../daemon/process/log.js';
import { changesFile, copied, linesOf, advanceSlowly, rawLines, usesFile, useLines } from '../support/audit-files.js';
import { canary } from '../support/canaries.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { auditOf, bodyOf, problemOf, storedIn } from '../support/management.js';
import { perSuite } from '../support/per-test.js';
import { startProvider } from '../support/provider.js';
import { scraped, sumOf } from '../support/scrape.js';
import { ServedDaemon } from './support/served-daemon.js';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

interface Ready {
  degraded: string[];
}
const degradedOf = async ({ url }: TestDaemon) => ((await (await fetch(`${url}/ready`)).json()) as Ready).degraded;

describe('N: the audit files when they cannot be written', () => {
  const provider = perSuite(startProvider);
  let daemon: TestDaemon;
  let dir: string;
  let project: WireProject;
  let token: WireTokenCreated;

  beforeEach(() => {
    dir = temporaryFolder();
  });
  afterEach(() => daemon.stop());

  const start = async (env: Record<string, string> = {}) => {
    daemon = await startDaemon({ upstream: provider.url, dir, env });
    project = await daemon.createProject();
    token = await daemon.createToken(project.id);
  };
  const use = async () => (await daemon.call(token.token)).status;

  it('N01: with a full disk, every change gets 503 and nothing changes; changes work again when there is space', async () => {
    const path = join(dir, 'audit.log');
    await start();
    await copied(daemon);
    renameSync(path, `${path}.1`);
    symlinkSync('/dev/full', path);
    // The change that first meets the full disk is in the database; its copy in the file is delayed.
    await daemon.createToken(project.id);
    await eventually('the appender has noticed', async () => (await degradedOf(daemon)).includes('audit_file'));
    const before = await storedIn(daemon);
    const changes: [string, string, object?][] = [
      ['POST', '/manage/tokens', { project_id: project.id }],
      ['DELETE', `/manage/tokens/${token.id}`],
      ['PATCH', `/manage/tokens/${token.id}`, { is_active: false }],
      ['POST', '/manage/projects', { name: 'Beta', api_key: canary('upstream') }],
      ['PATCH', `/manage/projects/${project.id}`, { is_active: false }],
      ['POST', `/manage/projects/${project.id}/tokens/revoke`],
      ['POST', '/manage/cache/purge', { all: true }],
      ['POST', '/manage/migrations/up'],
    ];
    for (const [method, target, body] of changes) {
      const answer = await daemon.manage(method, target, body);
      problemOf(answer, 503, 'unavailable');
      expect(Number(answer.headers.get('retry-after'))).to.be.greaterThan(0);
    }
    expect(await storedIn(daemon)).to.deep.equal(before);
    expect(await use()).to.equal(200);

    unlinkSync(path);
    await advanceSlowly(daemon, 2);
    await eventually('changes work again', async () => (await degradedOf(daemon)).length === 0);
    expect((await daemon.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
    const lines = await copied(daemon);
    expect(lines.map(({ action }) => action)).to.deep.equal(['token.create', 'token.revoke']);
    expect([...linesOf(`${path}.1`), ...lines].map(({ line }) => line)).to.deep.equal([1, 2, 3, 4]);
  });

  it('N01: a daemon starts with a folder that it cannot write to, refuses changes, and accepts them as soon as it can write', async function () {
    const path = join(dir, 'file', 'audit.log');
    execFileSync('touch', [join(dir, 'file')]); // A file in place of the folder.
    daemon = await startDaemon({ upstream: provider.url, dir, env: { AUDIT_LOG_FILE: path, AUDIT_USE_LOG_FILE: '' } });
    const draft = { name: 'Alpha', api_key: canary('upstream') };
    problemOf(await daemon.manage('POST', '/manage/projects', draft), 503, 'unavailable');
    unlinkSync(join(dir, 'file'));
    await advanceSlowly(daemon, 2);
    await eventually('changes work', async () => (await degradedOf(daemon)).length === 0);
    await daemon.createProject();
    expect(await copied(daemon, path)).to.have.length(1);
  });

  it('N02: requests are forwarded while uses cannot be written; /ready and the status show it, and waiting records are written later', async () => {
    const path = usesFile({ dir });
    symlinkSync('/dev/full', path);
    await start();
    expect(await use()).to.equal(200);
    await eventually('it is noticed', async () => {
      daemon.clock.advance(500);
      return (await degradedOf(daemon)).includes('audit_file');
    });
    expect(await use()).to.equal(200);
    const { status, failures } = daemon.daemon.auditFiles.status;
    expect({ status, failures }).to.deep.equal({ status: 'failing', failures: 1 });
    // A failing audit of uses does not block changes.
    await daemon.createToken(project.id);
    unlinkSync(path);
    await advanceSlowly(daemon, 2);
    expect((await useLines(daemon, 2)).map(({ line }) => line)).to.deep.equal([1, 2]);
    // Lines can be read before they are on the disk.
    await eventually('everything works', async () => (await degradedOf(daemon)).length === 0);
  });

  it('N02: records that do not fit in memory while uses cannot be written are dropped and counted; the others are written completely', async () => {
    const path = usesFile({ dir });
    symlinkSync('/dev/full', path);
    await start({ ENABLE_METRICS: 'true' });
    await (await daemon.call(token.token)).arrayBuffer();
    await eventually('it has ended', () => daemon.ended.length === 1);
    const { auditFiles } = daemon.daemon;
    const long = { ...daemon.ended[0]!, path: `/v1/${'a'.repeat(1_000_000)}` };
    for (let n = 0; n < 40; n++) auditFiles.record(long);
    await advanceSlowly(daemon, 2);
    const droppedOf = async () => sumOf(await scraped(`${daemon.url}/metrics`), 'llmp_audit_use_lines_dropped_total');
    const dropped = await droppedOf();
    expect(dropped).to.be.within(6, 10);
    expect(auditFiles.useLog?.waitingBytes).to.be.at.most(32 * 1024 * 1024);
    unlinkSync(path);
    await eventually('all is written', () => {
      daemon.clock.advance(1_000);
      return auditFiles.useLog?.waitingBytes === 0;
    });
    const lines = linesOf(path);
    expect(lines).to.have.length(41 - dropped);
    expect(lines.map(({ line }) => line)).to.deep.equal(lines.map((_, index) => index + 1));
    await eventually('it is reported', () => daemon.logged.some((line) => line.includes('uses of tokens are missing')));
    expect(daemon.logged.find((line) => line.includes('uses of tokens are missing'))).to.include(`"lines":${dropped}`);
    expect(await droppedOf()).to.equal(dropped);
  });

  it('N03: a disk that hangs delays no request, and after five seconds changes are refused', async () => {
    const path = join(dir, 'audit.log');
    // A pipe from the start, because one that replaces a file later is refused at once.
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    await start();
    await eventually('both are in the pipe', () => daemon.daemon.auditFiles.changes?.head.line === 2);
    unlinkSync(path);
    closeSync(reader);
    execFileSync('mkfifo', [path]); // Opening it waits for a reader that never opens it.
    await daemon.createToken(project.id);
    await new Promise((resolve) => setImmediate(resolve));
    const begun = performance.now();
    expect(await use()).to.equal(200);
    expect((await daemon.manage('GET', '/manage/tokens')).status).to.equal(200);
    expect(performance.now() - begun).to.be.lessThan(5_000);
    await advanceSlowly(daemon, 8);
    expect(await degradedOf(daemon)).to.deep.equal(['audit_file']);
    problemOf(await daemon.manage('DELETE', `/manage/tokens/${token.id}`), 503, 'unavailable');
    expect(await use()).to.equal(200);

    unlinkWhileOpened(path);
    await advanceSlowly(daemon, 2);
    await eventually('changes work again', async () => {
      daemon.clock.advance(1_000);
      return (await degradedOf(daemon)).length === 0;
    });
    // The third record went into the pipe, and no further check is possible.
    expect((await daemon.manage('DELETE', `/manage/tokens/${token.id}`)).status).to.equal(200);
    expect((await copied(daemon)).map(({ line, action }) => [line, action])).to.deep.equal([[4, 'token.revoke']]);
  });

  /** Lets the process that waits for a reader continue, and puts nothing in place of the pipe. */
  function unlinkWhileOpened(path: string): void {
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    unlinkSync(path);
    setTimeout(() => {
      closeSync(reader);
    }, 500);
  }

  it('N04: no record is lost, duplicated or torn when the file is renamed or reopened under load', async () => {
    await start();
    const path = changesFile(daemon);
    const aside: string[] = [];
    for (let round = 0; round < 4; round++) {
      const creating = Promise.all(Array.from({ length: 10 }, () => daemon.createToken(project.id)));
      await eventually('some are written', () => linesOf(path).length > 0);
      aside.push(`${path}.${4 - round}`);
      renameSync(path, aside.at(-1)!);
      if (round % 2 === 0) daemon.daemon.auditFiles.wake();
      await creating;
    }
    await daemon.createToken(project.id);
    await copied(daemon);
    const all = [...aside, path].flatMap(linesOf);
    const records = await auditOf(daemon);
    expect(all.map(({ id }) => id)).to.deep.equal(records.map((record) => (record as unknown as { id: string }).id));
    expect(all.map(({ line }) => line)).to.deep.equal(all.map((_, index) => index + 1));
  });

  it('N04: a line longer than the maximum size of a file is written, and so are later ones', async () => {
    await start({ AUDIT_USE_LOG_MAX_SIZE: '1KB' });
    await (await daemon.call(token.token, `/v1/${'a'.repeat(3_000)}`)).arrayBuffer();
    await useLines(daemon, 1);
    expect(await use()).to.equal(200);
    const [line] = await useLines(daemon, 1);
    await eventually('the long one was rotated', () => {
      daemon.clock.advance(500);
      return existsSync(`${usesFile(daemon)}.1`);
    });
    expect(line).to.include({ action: 'token.use' });
    expect(linesOf(`${usesFile(daemon)}.1`)[0]?.line).to.equal(1);
    expect((await useLines(daemon, 1))[0]?.line).to.equal(2);
  });

  it('N06: characters that would forge a line or control a terminal are escaped, in one line', async () => {
    await start();
    const reason = '\u202e"},{"level":"error"}';
    const headers = { 'x-audit-reason': encodeURIComponent(reason) };
    await daemon.manage('DELETE', `/manage/tokens/${token.id}`, undefined, headers);
    const name = 'gro.live {"level":"error"}';
    await daemon.createToken(project.id, { name });
    const lines = await copied(daemon);
    expect(lines.at(-1)?.details?.name).to.equal(name);
    expect(lines.at(-2)?.reason).to.equal(reason);
    expect(readFileSync(changesFile(daemon), 'utf8')).not.to.match(/[^\n\P{C}]|[\u2028\u2029]/u);
    expect(rawLines(changesFile(daemon))).to.have.length(lines.length);
  });

  it('N07: every change and every refused change has exactly one record, the same in the database and in the file', async () => {
    await start();
    const at = { project: `/manage/projects/${project.id}`, token: `/manage/tokens/${token.id}` };
    const nobody = { project: `/manage/projects/${UNKNOWN_ID}`, token: `/manage/tokens/${UNKNOWN_ID}` };
    const key = canary('upstream');
    const cases: [string, string, object | undefined, number, string, string][] = [
      ['POST', '/manage/projects', { name: 'Beta', api_key: key }, 201, 'project.create', 'success'],
      ['POST', '/manage/projects', { name: 'Beta', api_key: key }, 409, 'project.create', 'denied'],
      ['PATCH', at.project, { name: 'Gamma' }, 200, 'project.update', 'success'],
      ['PATCH', at.project, { name: 'Beta' }, 409, 'project.update', 'denied'],
      ['PATCH', nobody.project, { name: 'Delta' }, 404, 'project.update', 'denied'],
      ['DELETE', at.project, undefined, 405, 'project.delete_refused', 'denied'],
      ['POST', '/manage/tokens', { project_id: project.id }, 201, 'token.create', 'success'],
      ['POST', '/manage/tokens', { project_id: UNKNOWN_ID }, 404, 'token.create', 'denied'],
      ['PATCH', at.token, { is_active: false }, 200, 'token.revoke', 'success'],
      ['PATCH', at.token, { is_active: true }, 200, 'token.reactivate', 'success'],
      ['DELETE', at.token, undefined, 200, 'token.revoke', 'success'],
      ['DELETE', nobody.token, undefined, 404, 'token.revoke', 'denied'],
      ['PATCH', nobody.token, { is_active: true }, 404, 'token.reactivate', 'denied'],
      ['POST', `${at.project}/tokens/revoke`, undefined, 200, 'token.revoke_all', 'success'],
      ['POST', `${nobody.project}/tokens/revoke`, undefined, 404, 'token.revoke_all', 'denied'],
      ['POST', '/manage/cache/purge', { all: true }, 200, 'cache.purge', 'success'],
      ['POST', '/manage/cache/purge', { project_id: UNKNOWN_ID }, 404, 'cache.purge', 'denied'],
    ];
    for (const [index, [method, path, body, status, action, outcome]] of cases.entries()) {
      const headers = { 'x-request-id': `case-${index}`, 'x-llmp-actor': 'tui' };
      const answer = await daemon.manage(method, path, body, headers);
      expect(answer.status, `${method} ${path}`).to.equal(status);
      const query = `/manage/audit?q=case-${index}`;
      const records = (await bodyOf<WireAuditRecord[]>(daemon.manage('GET', query))).filter(
        ({ request_id }) => request_id === `case-${index}`,
      );
      expect(records, query).to.have.length(1);
      expect(records[0]).to.include({ action, outcome, actor: 'tui', client_ip: '127.0.0.1' });
      const lines = (await copied(daemon)).filter(({ request_id }) => request_id === `case-${index}`);
      expect(lines.map(({ id }) => id)).to.deep.equal([records[0]?.id]);
    }
  });

  it('N08: refused logins, 401s and 429s are recorded: with the obfuscated ID of a known token, else summed up', async () => {
    await start();
    await daemon.manage('GET', '/manage/tokens', undefined, { authorization: 'Bearer wrong' });
    await daemon.manage('DELETE', `/manage/tokens/${token.id}`);
    await daemon.call(token.token);
    const capped = await daemon.createToken(project.id, { max_requests: 1 });
    await (await daemon.call(capped.token)).arrayBuffer();
    await daemon.call(capped.token);
    for (let n = 0; n < 50; n++) await fetch(`${daemon.url}/v1/models`);
    await useLines(daemon, 3);
    daemon.clock.advance(60_000);
    const uses = await useLines(daemon, 4);
    expect(
      uses.map(({ outcome, obfuscated, count, details }) => [outcome, obfuscated, count, details?.code]),
    ).to.deep.equal([
      ['denied', token.obfuscated, null, 'unauthorized'],
      ['success', capped.obfuscated, null, null],
      ['denied', capped.obfuscated, null, 'request_limit_reached'],
      ['denied', null, 50, 'unauthorized'],
    ]);
    const denied = (await copied(daemon)).filter(({ action }) => action === 'management.denied');
    expect(denied.map(({ outcome, client_ip }) => [outcome, client_ip])).to.deep.equal([['denied', '127.0.0.1']]);
    const all = readFileSync(usesFile(daemon), 'utf8') + readFileSync(changesFile(daemon), 'utf8');
    expect(all).not.to.include(capped.token.slice(12, -5));
  });
});

describe('N: the end of a process', function () {
  this.timeout(60_000);
  let served: ServedDaemon;

  afterEach(() => served.stop());

  /** @param goesWrong what happens in the process at SIGUSR2. */
  async function launch(env: Record<string, string>, goesWrong = '') {
    served = await ServedDaemon.start({ env, atSignal: goesWrong });
    await eventually('it has opened its files', () => existsSync(usesFile(served)));
    return {
      ...served.process,
      createToken: () => served.management.createToken({ project_id: served.projectId }),
      /** @returns the ID of the request, after its response is complete. */
      use: async (path?: string) => (await served.get(path)).header('x-request-id'),
    };
  }

  for (const [what, signals] of [
    ['SIGTERM', ['SIGTERM']],
    ['a second SIGTERM, which does not wait', ['SIGTERM', 'SIGTERM']],
  ] as const) {
    it(`N05: after ${what} the last use and the last change are in their files`, async () => {
      const { child, exit, use } = await launch({ SHUTDOWN_DELAY: signals.length > 1 ? '20s' : '0' });
      for (let n = 0; n < 5; n++) await use();
      for (const signal of signals) {
        child.kill(signal);
        if (signals.length > 1) await new Promise((resolve) => setTimeout(resolve, 400));
      }
      await exit;
      expect(linesOf(usesFile(served)).map(({ line }) => line)).to.deep.equal([1, 2, 3, 4, 5]);
      expect(linesOf(changesFile(served)).map(({ action }) => action)).to.deep.equal([
        'project.create',
        'token.create',
      ]);
    });
  }

  // Nobody can plan a real defect of the daemon, so a file that is not part of it causes one.
  const THROWN = "throw new Error('nobody caught this');";
  const REJECTED = "void Promise.reject(new Error('nobody caught this'));";

  const expectWhole = (path: string) => {
    expect(readFileSync(path, 'utf8')).to.match(/\n$/, 'its last line is complete');
    const lines = linesOf(path);
    expect(lines.map(({ line }) => line)).to.deep.equal(lines.map((_, index) => index + 1));
    return lines;
  };

  /** Repeats `call` until the daemon is gone. @returns the results. */
  async function untilGone<T>(call: () => Promise<T>): Promise<T[]> {
    const said: T[] = [];
    try {
      for (;;) said.push(await call());
    } catch {
      return said;
    }
  }

  for (const [what, goesWrong] of [
    ['an exception', THROWN],
    ['a rejection', REJECTED],
  ] as const) {
    it(`N05 M11: ${what} that is not caught ends the daemon with exit code 1 after requests in flight end; each use and change that it confirmed is recorded once`, async () => {
      const { child, exit, logged, printed, createToken, use } = await launch({ SHUTDOWN_DELAY: '0' }, goesWrong);
      let finish: () => void = () => undefined;
      const isAsked = new Promise<void>((resolve) => {
        served.provider.answer = (_req, res, { url }) => {
          if (url !== '/v1/slow') {
            res.end('done');
            return;
          }
          finish = () => res.end('done');
          resolve();
        };
      });
      const slow = use('/v1/slow');
      await isAsked;
      const uses = Array.from({ length: 8 }, () => untilGone(() => use()));
      const changes = untilGone(createToken);
      await eventually('uses and changes are recorded', () =>
        [usesFile(served), changesFile(served)].every((path) => linesOf(path).length > 5),
      );
      child.kill('SIGUSR2');
      await eventually('it is about to end', () => logged.some((line) => line.includes('"draining"')));
      finish();
      expect(await exit).to.equal(1);
      expect(logged.filter((line) => line.includes('nobody caught this'))).to.have.length(1);
      expect(logged.at(-1)).to.include('"stopped"');
      expect(printed.stderr).to.equal('');

      const used = [await slow, ...(await Promise.all(uses)).flat()];
      const useIds = expectWhole(usesFile(served)).map(({ request_id }) => request_id);
      expect(new Set(useIds).size).to.equal(useIds.length);
      expect(useIds).to.include.members(used);
      const created = (await changes).map(({ id }) => id);
      const createdIds = expectWhole(changesFile(served)).map(({ token_id }) => token_id);
      expect(new Set(createdIds).size).to.equal(createdIds.length);
      expect(createdIds).to.include.members(created);
    });
  }

  it('N05 M11: a second exception during the shutdown ends it at once, without losing a use or a change', async () => {
    const { child, exit, logged, printed, createToken, use } = await launch({ SHUTDOWN_DELAY: '20s' }, THROWN);
    child.kill('SIGUSR2');
    await eventually('it is about to end', () => logged.some((line) => line.includes('"draining"')));
    const used = await Promise.all(Array.from({ length: 5 }, () => use()));
    const { id } = await createToken();
    child.kill('SIGUSR2');
    expect(await exit).to.equal(1);
    // In the log, where secrets are masked, and not printed by Node itself.
    expect(logged.filter((line) => line.includes('nobody caught this'))).to.have.length(2);
    expect(printed.stderr).to.equal('');
    expect(expectWhole(usesFile(served)).map(({ request_id }) => request_id)).to.have.members(used);
    // If its copy in the file is not complete, the database has the rest: the next daemon continues from there.
    const next = await startDaemon({ upstream: served.provider.url, dir: served.dir });
    const lines = await copied(next);
    await next.stop();
    expect(lines.map(({ action }) => action)).to.deep.equal(['project.create', 'token.create', 'token.create']);
    expect(lines.at(-1)).to.include({ line: 3, token_id: id });
  });
});

describe('N: the log in a flood', () => {
  it('N10: of 100,000 equal errors some hundred are written, and the others counted', async function () {
    this.timeout(60_000);
    const lines: string[] = [];
    const { Writable } = await import('node:stream');
    const stream = new Writable({
      decodeStrings: false,
      write(line: string, _encoding, done) {
        lines.push(line);
        done();
      },
    });
    const log = createLog({ level: 'info', format: 'json', secrets: [], stream });
    for (let n = 0; n < 100_000; n++) log.error('database unavailable', { n });
    log.info('something else');
    await eventually('the count is logged', () => lines.some((line) => line.includes('records dropped')));
    expect(lines.length).to.be.lessThan(2_000);
    const written = lines.filter(
      (line) => line.includes('database unavailable') && !line.includes('records dropped'),
    ).length;
    const counts = lines
      .filter((line) => line.includes('records dropped'))
      .map((line) => (JSON.parse(line) as { count: number }).count);
    expect(written + counts.reduce((sum, count) => sum + count, 0)).to.equal(100_000);
    expect(lines.some((line) => line.includes('something else'))).to.equal(true);
  });

  it('N10: while the log is not read, only some megabytes of it wait in memory', async function () {
    this.timeout(60_000);
    const { Writable } = await import('node:stream');
    const stream = new Writable({ decodeStrings: false, write: () => undefined });
    const log = createLog({ level: 'info', format: 'json', secrets: [], stream });
    for (let n = 0; n < 100_000; n++) log.info(`message ${n}`, { text: 'x'.repeat(1_000) });
    expect(stream.writableLength).to.be.lessThan(20_000_000);
  });
});
