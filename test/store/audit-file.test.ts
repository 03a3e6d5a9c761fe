import { expect } from 'chai';
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, renameSync, truncateSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { WireProject } from '../../daemon/api/contract.js';
import type { AnchorStore } from '../../daemon/store/audit-file/anchors.js';
import { AuditFile } from '../../daemon/store/audit-file/audit-file.js';
import { chainLines } from '../../daemon/store/audit-file/chain.js';
import {
  allCopied,
  type AuditLine,
  changesFile,
  copied,
  linesOf,
  advanceSlowly,
  rawLines,
  usesFile,
  useLines,
  writeInto,
} from '../support/audit-files.js';
import { silent } from '../support/cache-model/instance.js';
import { startDaemon, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { bodyOf } from '../support/management.js';
import { startProvider, type Provider } from '../support/provider.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function expectChained(files: readonly string[]): void {
  let prev = '0'.repeat(64);
  let number = 0;
  for (const text of files.flatMap((file) => rawLines(file))) {
    const line = JSON.parse(text) as AuditLine;
    expect({ line: line.line, prev: line.prev }).to.deep.equal({ line: (number += 1), prev });
    prev = sha256(text);
  }
  expect(number).to.be.greaterThan(0);
}

describe('the change log file', () => {
  let daemon: TestDaemon;
  let project: WireProject;

  beforeEach(async () => {
    daemon = await startDaemon();
    project = await daemon.createProject({ name: 'Alpha' });
  });
  afterEach(() => daemon.stop());

  it('has one line per record, with its fields, in the order of the database, each chained to the previous line', async () => {
    await daemon.createToken(project.id, { name: 'nightly' });
    const body = { name: 'Alpha', api_key: 'k'.repeat(20) };
    const headers = { 'x-llmp-user': 'ana@laptop', 'x-audit-batch': randomUUID() };
    await daemon.manage('POST', '/manage/projects', body, headers);
    const lines = await copied(daemon);
    const shown = await bodyOf<Record<string, unknown>[]>(daemon.manage('GET', '/manage/audit'));
    // Not the names: they may change, and a line must not. A user or a batch only if there is one.
    const stored = shown.map(({ project_name: _project, token_name: _token, user, batch, undo_of, ...record }) => ({
      ...record,
      ...(user !== null && { user }),
      ...(batch !== null && { batch }),
      ...(undo_of !== null && { undo_of }),
    }));
    expect(lines.map(({ line: _line, prev: _prev, seq: _seq, ...record }) => record).reverse()).to.deep.equal(stored);
    expect(lines.map(({ action, outcome }) => [action, outcome])).to.deep.equal([
      ['project.create', 'success'],
      ['token.create', 'success'],
      ['project.create', 'denied'],
    ]);
    expectChained([changesFile(daemon)]);
    expect(statSync(changesFile(daemon)).mode & 0o777).to.equal(0o600);
  });

  it('continues where it ended after a restart of the daemon, without a missing or repeated record', async () => {
    await copied(daemon);
    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir });
    await daemon.createToken(project.id);
    expect(await copied(daemon)).to.have.length(2);
    expectChained([changesFile(daemon)]);
  });

  it('receives at the next start the records that a crash left out, and an incomplete line is ended and stays in the chain', async () => {
    await daemon.createToken(project.id);
    await copied(daemon);
    await daemon.stop();
    const path = changesFile(daemon);
    const second = rawLines(path)[1]!;
    // A crash can only affect lines that are not anchored yet: a line is anchored after the disk has it.
    await writeInto(daemon.databasePath, 'DELETE FROM audit_anchors');
    truncateSync(path, statSync(path).size - second.length + 20);
    await expectTorn(path);
  });

  async function expectTorn(path: string): Promise<void> {
    const torn = rawLines(path).length + 1;
    daemon = await startDaemon({ dir: daemon.dir });
    await eventually('the record is written again', () => rawLines(path).length === torn + 1);
    const lines = rawLines(path);
    const last = JSON.parse(lines.at(-1)!) as AuditLine;
    expect(last).to.include({ action: 'token.create', line: torn + 1, prev: sha256(lines.at(-2)!) });
    expect(() => JSON.parse(lines.at(-2)!) as unknown).to.throw();
  }

  for (const [what, cut] of [
    ['in its first byte', (line: string) => line.slice(0, 1)],
    ['within its link', (line: string) => line.slice(0, 40)],
    ['after its link', (line: string) => line.slice(0, 120)],
    ['and already ended', (line: string) => `${line.slice(0, 40)}\n`],
  ] as const) {
    it(`continues after the first line of a new file that a crash has left incomplete: ${what}`, async () => {
      await copied(daemon);
      await daemon.stop();
      const path = changesFile(daemon);
      const last = rawLines(path).at(-1)!;
      renameSync(path, `${path}.1`);
      writeFileSync(path, cut(`{"line":2,"prev":"${sha256(last)}","seq":2,"id":"${'a'.repeat(36)}"}`));
      daemon = await startDaemon({ dir: daemon.dir });
      await daemon.createToken(project.id);
      await allCopied(daemon);
      const [torn, next] = rawLines(path);
      expect(JSON.parse(next!)).to.include({ action: 'token.create', line: 3, prev: sha256(torn!), seq: 2 });
      expect((await daemon.manage('GET', '/ready')).body)
        .to.include({ status: 'ready' })
        .and.to.have.deep.property('degraded', []);
    });
  }

  it('completes a line of which the disk took only the beginning, in a new file too', async () => {
    await copied(daemon);
    const path = changesFile(daemon);
    renameSync(path, `${path}.1`);
    const refuse = await writesOnce(20);
    await daemon.createToken(project.id);
    await eventually('a write has failed', refuse.hasFailed);
    await advanceSlowly(daemon, 2);
    await allCopied(daemon);
    expect(linesOf(path).map(({ line, seq }) => [line, seq])).to.deep.equal([[2, 2]]);
    expectChained([`${path}.1`, path]);
    expect((await daemon.manage('GET', '/ready')).body).to.have.deep.property('degraded', []);
  });

  it('removes the beginning of a line from a file that was renamed meanwhile, and writes the line to the new one', async () => {
    await copied(daemon);
    const path = changesFile(daemon);
    const refuse = await writesOnce(20);
    await daemon.createToken(project.id);
    await eventually('a write has failed', refuse.hasFailed);
    renameSync(path, `${path}.1`);
    await advanceSlowly(daemon, 2);
    await allCopied(daemon);
    expectChained([`${path}.1`, path]);
    expect(linesOf(path)).to.have.length(1);
    expect(readFileSync(`${path}.1`, 'utf8').endsWith('}\n')).to.equal(true);
    expect((await daemon.manage('GET', '/ready')).body).to.have.deep.property('degraded', []);
  });

  /** The next write to any file writes only this many bytes; then the disk is full. */
  async function writesOnce(bytes: number): Promise<{ hasFailed: () => boolean }> {
    const any = await open(daemon.databasePath);
    const shared = Object.getPrototypeOf(any) as { write: (piece: Buffer) => Promise<unknown> };
    await any.close();
    const { write } = shared;
    let hasFailed = false;
    shared.write = async function (this: FileHandle, piece: Buffer) {
      shared.write = () => {
        shared.write = write;
        hasFailed = true;
        return Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
      };
      return write.call(this, piece.subarray(0, bytes));
    };
    return { hasFailed: () => hasFailed };
  }

  it('starts a new chain without any file, and continues from its newest rotation after a rotation', async () => {
    const path = changesFile(daemon);
    await copied(daemon);
    await daemon.stop();
    renameSync(path, `${path}.1`);
    daemon = await startDaemon({ dir: daemon.dir });
    await daemon.createToken(project.id);
    await copied(daemon);
    expect(linesOf(path).map(({ action }) => action)).to.deep.equal(['token.create']);
    expectChained([`${path}.1`, path]);
  });

  it('continues after the last anchor in the database when all files are gone', async () => {
    const path = changesFile(daemon);
    await copied(daemon);
    await daemon.stop();
    renameSync(path, `${path}.somewhere-else`);
    daemon = await startDaemon({ dir: daemon.dir });
    await daemon.createToken(project.id);
    const [line] = await copied(daemon);
    expect(line).to.include({ action: 'token.create', line: 2, prev: sha256(rawLines(`${path}.somewhere-else`)[0]!) });
  });

  it('is anchored every minute while it grows, and at shutdown', async () => {
    const anchors = () =>
      daemon.daemon.stores.database.select<{ line: number; head: string }>(
        'SELECT line, head FROM audit_anchors WHERE chain = $chain ORDER BY line',
        { chain: changesFile(daemon) },
      );
    await copied(daemon);
    daemon.clock.advance(60_000);
    await eventually('there is an anchor', async () => (await anchors()).length === 1);
    expect(await anchors()).to.deep.equal([{ line: 1, head: sha256(rawLines(changesFile(daemon))[0]!) }]);
    daemon.clock.advance(120_000);
    expect(await anchors()).to.have.length(1);
    await daemon.createToken(project.id);
    await copied(daemon);
    await daemon.stop();
    daemon = await startDaemon({ dir: daemon.dir });
    expect((await anchors()).map(({ line }) => line)).to.deep.equal([1, 2]);
  });

  it('logs an error when it is shorter than before', async () => {
    const path = changesFile(daemon);
    await daemon.createToken(project.id);
    await copied(daemon);
    await daemon.stop();
    writeFileSync(path, `${rawLines(path)[0]!}\n`);
    daemon = await startDaemon({ dir: daemon.dir });
    expect(daemon.logged.join('')).to.include('the audit file is shorter than before');
  });

  it('is not written if AUDIT_LOG_FILE is empty, and changes are still accepted', async () => {
    const other = await startDaemon({ env: { AUDIT_LOG_FILE: '', AUDIT_USE_LOG_FILE: '' } });
    await other.createProject();
    await other.stop();
    expect(existsSync(changesFile(other))).to.equal(false);
  });

  it('belongs to one process: a second one is refused, with the name of the setting', async () => {
    const env = { AUDIT_LOG_FILE: changesFile(daemon), AUDIT_USE_LOG_FILE: '' };
    const refused = await startDaemon({ env }).then(
      () => null,
      (error: unknown) => error as Error,
    );
    expect(refused?.message).to.match(/AUDIT_LOG_FILE: .* is in use by another llmp process/);
  });
});

describe('the use log file', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let secret: string;

  beforeEach(async () => {
    provider = await startProvider();
    daemon = await startDaemon({
      upstream: provider.url,
      env: { AUDIT_USE_LOG_MAX_SIZE: '2KB', AUDIT_USE_LOG_MAX_FILES: '3' },
    });
    secret = (await daemon.createToken((await daemon.createProject()).id)).token;
  });
  afterEach(async () => {
    await daemon.stop();
    await provider.stop();
  });

  const use = async (path = '/v1/models') => (await daemon.call(secret, path)).arrayBuffer();

  it('has one line for each request with a known token', async () => {
    await use('/v1/models?limit=1');
    const [line] = await useLines(daemon, 1);
    expect(line).to.include({ action: 'token.use', actor: 'token', outcome: 'success', client_ip: '127.0.0.1' });
    expect(line?.details).to.include({ method: 'GET', path: '/v1/models', status: 200, cache: 'miss', code: null });
    expect(line?.obfuscated).to.equal(`${secret.slice(0, 10)}…${secret.slice(-4)}`);
  });

  it('counts requests with an unknown token: one line per minute and error code', async () => {
    for (let n = 0; n < 3; n++) await daemon.call(`sk-wt-${'0'.repeat(49)}`);
    await fetch(`${daemon.url}/v1/models`);
    await use();
    await useLines(daemon, 1);
    daemon.clock.advance(60_000);
    const lines = await useLines(daemon, 2);
    expect(lines.map(({ outcome, count, details }) => [outcome, count, details?.code])).to.deep.equal([
      ['success', null, null],
      ['denied', 4, 'unauthorized'],
    ]);
  });

  it('is rotated at its maximum size, keeps the configured number of files, and continues the chain', async () => {
    const path = usesFile(daemon);
    for (let n = 0; n < 30; n++) {
      await use();
      daemon.clock.advance(600);
    }
    await eventually('the last line is written', () => {
      daemon.clock.advance(600);
      try {
        return existsSync(`${path}.3`) && Number(linesOf(path).at(-1)?.line) === 30;
      } catch {
        return false; // Between two files: one was renamed, and the next is not there yet.
      }
    });
    expect(existsSync(`${path}.4`)).to.equal(false);
    const kept = [`${path}.3`, `${path}.2`, `${path}.1`, path].flatMap((file) => rawLines(file));
    for (const [index, text] of kept.entries()) {
      if (index > 0) expect((JSON.parse(text) as AuditLine).prev).to.equal(sha256(kept[index - 1]!));
    }
  });

  it('is only renamed when the database knows where it ends: a crash after that would look like a removed file', async () => {
    const path = join(daemon.dir, 'own.log');
    const saved: [string, boolean][] = [];
    const anchors: AnchorStore = {
      last: () => Promise.resolve(null),
      newest: () => Promise.resolve(null),
      deleteBefore: () => Promise.resolve(),
      async save(chain, { line }) {
        await new Promise((resolve) => setImmediate(resolve));
        saved.push([`${chain === path ? 'file' : 'end'} ${line}`, existsSync(`${path}.1`)]);
      },
    };
    const rotation = { maxBytes: 100, maxFiles: 1 };
    const file = new AuditFile({ path, anchors, clock: daemon.clock, log: silent, rotation });
    for (let n = 0; n < 2; n++) {
      await file.ready(100);
      const { bytes, head } = chainLines(['"action":"x"}'], file.head);
      await file.append(bytes, head);
    }
    expect(saved).to.deep.equal([
      ['file 1', false],
      ['end 1', false],
    ]);
    expect(existsSync(`${path}.1`)).to.equal(true);
    await file.close();
  });

  it('continues after a crash has left its last line incomplete', async () => {
    await use();
    await useLines(daemon, 1);
    await daemon.stop();
    appendFileSync(usesFile(daemon), '{"line":2,"prev":"ab');
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
    await use();
    await daemon.stop();
    const lines = rawLines(usesFile(daemon));
    expect(JSON.parse(lines[2]!)).to.include({ line: 3, prev: sha256(lines[1]!) });
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
  });
});
