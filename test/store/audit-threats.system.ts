/** Attacks by someone with write access to the folder of the audit files, and their effects: one test for each. */
import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { WireProject } from '../../daemon/api/contract.js';
import { chainLines, fieldsOf } from '../../daemon/store/audit-file/chain.js';
import { llmp } from '../cli/captured.js';
import {
  allCopied,
  changesFile,
  copied,
  linesOf,
  advanceSlowly,
  rawLines,
  usesFile,
  useLines,
  writeInto,
} from '../support/audit-files.js';
import { startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { write } from '../support/management.js';
import { type Provider, startProvider } from '../support/provider.js';

const BEGINNING = { line: 0, digest: '0'.repeat(64) };
const textOf = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');
const put = (path: string, lines: readonly string[]) => {
  writeFileSync(path, textOf(lines));
};
/** Lines as an attacker makes them who knows the chain format. */
const rechained = (lines: readonly string[], head = BEGINNING) =>
  chainLines(fieldsOf(Buffer.from(textOf(lines))), head)
    .bytes.toString()
    .trimEnd()
    .split('\n');
const edited = (line: string) => line.replace('"success"', '"denied_"');

describe('audit files that someone else writes to', () => {
  let daemon: TestDaemon;
  let project: WireProject;
  let path: string;

  beforeEach(async () => {
    daemon = await startDaemon();
    path = changesFile(daemon);
    project = await daemon.createProject();
    for (let n = 0; n < 5; n++) await daemon.createToken(project.id);
    await copied(daemon);
  });
  afterEach(() => daemon.stop());

  const restart = async () => {
    daemon = await startDaemon({ dir: daemon.dir });
  };
  const settings = () => ({
    DATABASE_URL: daemon.databasePath,
    AUDIT_LOG_FILE: path,
    AUDIT_USE_LOG_FILE: usesFile(daemon),
    LLMP_OUTPUT: 'json',
  });
  const verified = async (...args: string[]) => {
    const { exitCode, out, err } = await llmp(['audit', 'verify', ...args], { env: settings() });
    expect(out, err).not.to.equal('');
    const { verdict, line } = JSON.parse(out) as { verdict: string; line: number | null };
    return { exitCode, verdict, line };
  };
  const WHOLE = { exitCode: 0, verdict: 'whole', line: null };
  const found = (verdict: string, line: number) => ({ exitCode: 9, verdict, line });
  const degraded = async () =>
    ((await daemon.manage('GET', '/ready')).body as { degraded: string[] }).degraded.includes('audit_file');
  const logsError = (what: string) => daemon.logged.some((line) => line.includes('"error"') && line.includes(what));
  /** Makes a change; expects it in the file after our own last line, and an error from the daemon. */
  const expectDoubt = async (why: string) => {
    await daemon.createToken(project.id);
    await allCopied(daemon);
    expect(logsError(why), why).to.equal(true);
    expect(await degraded()).to.equal(true);
  };
  const stopped = async (attack: () => void) => {
    await daemon.stop();
    attack();
  };
  /** Anchors the current lines. */
  const anchored = async () => {
    daemon.clock.advance(60_000);
    await eventually('the last line is anchored', async () => {
      const [row] = await daemon.daemon.stores.database.select<{ line: number }>(
        'SELECT MAX(line) AS line FROM audit_anchors WHERE chain = $path',
        { path },
      );
      return Number(row?.line) === daemon.daemon.auditFiles.changes?.head.line;
    });
  };

  describe('while the daemon is stopped', () => {
    const expectFound = async (attack: (lines: string[]) => void, verdict: string, line: number) => {
      await stopped(() => {
        attack(rawLines(path));
      });
      expect(await verified()).to.deep.equal(found(verdict, line));
      await restart();
    };

    it('an edited line is detected', () =>
      expectFound(
        (lines) => {
          put(
            path,
            lines.map((line, n) => (n === 2 ? edited(line) : line)),
          );
        },
        'changed',
        3,
      ));

    it('a removed line is detected', () =>
      expectFound(
        (lines) => {
          put(
            path,
            lines.filter((_, n) => n !== 2),
          );
        },
        'removed',
        3,
      ));

    it('removed last lines are detected, and the daemon logs it', async () => {
      await expectFound(
        (lines) => {
          put(path, lines.slice(0, 4));
        },
        'cut_off',
        5,
      );
      await expectDoubt('shorter than before');
      // It continues after the last anchored line, not after what was left of the file.
      expect(linesOf(path).map(({ line }) => line)).to.deep.equal([1, 2, 3, 4, 7, 8]);
      expect(await verified()).to.deep.equal(found('removed', 5));
    });

    it('an old copy in place of the file is detected, and the daemon logs it', async () => {
      copyFileSync(path, `${path}.copy`);
      for (let n = 0; n < 2; n++) await daemon.createToken(project.id);
      await copied(daemon);
      await stopped(() => {
        renameSync(`${path}.copy`, path);
      });
      expect(await verified()).to.deep.equal(found('cut_off', 7));
      await restart();
      await expectDoubt('shorter than before');
    });

    it('a chain that was rewritten from an edited line on is detected, and not continued', async () => {
      const forge = (lines: string[]) => {
        put(path, rechained(lines.map((line, n) => (n === 1 ? edited(line) : line))));
      };
      await expectFound(forge, 'rewritten', 1);
      await expectDoubt('was replaced or changed');
      expect((await verified()).exitCode).to.equal(9);
    });

    it('a forged file without any anchor is detected by comparison with the database', async () => {
      await stopped(() => {
        put(path, rechained(rawLines(path).map((line, n) => (n === 1 ? edited(line) : line))));
      });
      await writeInto(daemon.databasePath, 'DELETE FROM audit_anchors');
      expect(await verified()).to.deep.equal(found('foreign_record', 2));
      await restart();
    });

    it('forged last lines after a crash, which no anchor covers yet, are detected, and committed records follow', async () => {
      await stopped(() => {
        put(path, rechained(rawLines(path).map((line, n) => (n === 4 ? edited(line) : line))));
      });
      await writeInto(daemon.databasePath, 'DELETE FROM audit_anchors');
      const lines = rawLines(path);
      expect(await verified()).to.deep.equal(found('foreign_record', 5));
      await writeInto(
        daemon.databasePath,
        `INSERT INTO audit_anchors (chain, line, head, seq, anchored_at)
         VALUES ('${path}', 4, '${(JSON.parse(lines[4]!) as { prev: string }).prev}', 4, 1)`,
      );
      await restart();
      await expectDoubt('the database lacks records');
      expect(linesOf(path).map(({ seq }) => seq)).to.deep.equal([1, 2, 3, 4, 5, 6, 4, 5, 6, 7]);
    });

    it('a forged sequence number at the end of the file hides no record', async () => {
      await stopped(() => {
        const lines = rawLines(path);
        const last = lines.at(-1)!.replace(/"seq":\d+/, '"seq":900000');
        put(path, rechained([...lines, last]));
      });
      await restart();
      await expectDoubt('the database lacks records');
      expect(linesOf(path).at(-1)).to.include({ seq: 7, action: 'token.create' });
      expect(linesOf(path).at(-2)).to.include({ seq: 6, action: 'audit.database_behind', id: null });
    });

    it('two swapped files are intact, because file names do not matter, and a missing file is detected', async () => {
      await stopped(() => {
        const lines = rawLines(path);
        put(`${path}.2`, lines.slice(0, 2));
        put(`${path}.1`, lines.slice(2, 4));
        put(path, lines.slice(4));
      });
      expect(await verified()).to.deep.equal(WHOLE);
      renameSync(`${path}.2`, `${path}.3`);
      renameSync(`${path}.1`, `${path}.2`);
      renameSync(`${path}.3`, `${path}.1`);
      expect(await verified()).to.deep.equal(WHOLE);
      unlinkSync(`${path}.2`);
      expect(await verified()).to.deep.equal(found('removed', 3));
      await restart();
    });

    for (const name of ['-20000101', '-29990101', '.99999']) {
      it(`a file planted as ${name} is detected, and does not affect where the daemon continues`, async () => {
        await stopped(() => {
          put(`${path}${name}`, [`{"line":900000000,"prev":"${'a'.repeat(64)}","seq":900000,"action":"x"}`]);
          renameSync(path, `${path}-20200101`);
        });
        expect((await verified()).exitCode).to.equal(9);
        await restart();
        await daemon.createToken(project.id);
        expect((await copied(daemon)).map(({ line, seq }) => [line, seq])).to.deep.equal([[7, 7]]);
        expect((await verified()).exitCode).to.equal(9);
        rmSync(`${path}${name}`);
        expect(await verified()).to.deep.equal(WHOLE);
      });
    }

    it('a file planted as .gz next to the plain one is not read, and that is reported', async () => {
      await stopped(() => {
        const lines = rawLines(path);
        put(`${path}.1`, lines.slice(0, 3));
        put(path, lines.slice(3));
        writeFileSync(`${path}.1.gz`, gzipSync(textOf(lines.slice(0, 2))));
      });
      expect(await verified()).to.deep.equal(WHOLE);
      const { err } = await llmp('audit verify', { env: settings() });
      expect(err).to.include(`${path}.1.gz was skipped`);
      await restart();
    });

    it('a compressed file that expands endlessly is not read to its end', async () => {
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 'a'));
      await stopped(() => {
        writeFileSync(`${path}.1.gz`, bomb);
      });
      expect(await verified()).to.include({ exitCode: 9, verdict: 'unreadable' });
      await restart();
    });

    it('a damaged compressed file is detected', async () => {
      await stopped(() => {
        const lines = rawLines(path);
        const compressed = gzipSync(textOf(lines.slice(0, 3)));
        writeFileSync(`${path}.1.gz`, compressed.subarray(0, -12));
        put(path, lines.slice(3));
      });
      expect(await verified()).to.include({ exitCode: 9, verdict: 'unreadable' });
      await restart();
    });

    for (const [what, plant] of [
      ['a pipe', (at: string) => execFileSync('mkfifo', [at])],
      [
        'a folder',
        (at: string) => {
          mkdirSync(at);
        },
      ],
      [
        'a link to a device',
        (at: string) => {
          symlinkSync('/dev/zero', at);
        },
      ],
    ] as const) {
      it(`${what} under the name of an older file is detected and does not block`, async () => {
        await stopped(() => {
          plant(`${path}.1`);
        });
        expect(await verified()).to.include({ exitCode: 9, verdict: 'unreadable' });
        renameSync(path, `${path}.2`);
        await restart();
        await daemon.createToken(project.id);
        expect((await copied(daemon)).map(({ line }) => line)).to.deep.equal([7]);
      });
    }

    it('a file that is not an audit file is not written to, and changes are refused until it is gone', async () => {
      await stopped(() => {
        writeFileSync(path, 'something else\n');
      });
      await restart();
      expect((await daemon.manage('POST', '/manage/tokens', { project_id: project.id })).status).to.equal(503);
      expect(readFileSync(path, 'utf8')).to.equal('something else\n');
      unlinkSync(path);
      await advanceSlowly(daemon, 2);
      await eventually('changes are accepted again', async () => !(await degraded()));
      await daemon.createToken(project.id);
      expect((await copied(daemon)).map(({ line }) => line)).to.deep.equal([7]);
    });
  });

  describe('while the daemon runs', () => {
    it('a forged file that is renamed into place is not continued: error, degraded, immediate anchor', async () => {
      await anchored();
      put(`${path}.forged`, rechained(rawLines(path).map((line, n) => (n === 1 ? edited(line) : line))));
      renameSync(`${path}.forged`, path);
      await expectDoubt('was replaced or changed');
      expect(linesOf(path).at(-2)).to.include({ action: 'audit.file_replaced', line: 7 });
      await eventually('the marker is anchored at once', async () => {
        const rows = await daemon.daemon.stores.database.select<{ line: number }>('SELECT line FROM audit_anchors');
        return rows.some(({ line }) => line === 7);
      });
      expect((await verified()).exitCode).to.equal(9);
      // No one with write access to the folder can clear the alarm.
      renameSync(path, `${path}.away`);
      await daemon.createToken(project.id);
      await allCopied(daemon);
      expect(await degraded()).to.equal(true);
    });

    it('lines removed from or appended to the file in place are noticed with the next change', async () => {
      truncateSync(path, statSync(path).size - rawLines(path).at(-1)!.length - 1);
      await expectDoubt('the audit file was replaced or changed');
      expect((await verified()).exitCode).to.equal(9);
      appendFileSync(path, `${rawLines(path)[0]!}\n`);
      const errors = () =>
        daemon.logged.filter((line) => /the audit file (?:is shorter|was replaced)/.test(line)).length;
      const before = errors();
      await daemon.createToken(project.id);
      await allCopied(daemon);
      expect(errors()).to.equal(before + 1);
    });

    it('a new or empty file, as logrotate creates it, is continued without an error', async () => {
      renameSync(path, `${path}.1`);
      writeFileSync(path, '', { mode: 0o600 });
      await daemon.createToken(project.id);
      await copied(daemon);
      expect(await degraded()).to.equal(false);
      expect(linesOf(path).map(({ line }) => line)).to.deep.equal([7]);
      expect(await verified()).to.deep.equal(WHOLE);
    });

    it('its own file, moved away and back, is continued without an error', async () => {
      renameSync(path, `${path}.away`);
      renameSync(`${path}.away`, path);
      daemon.daemon.auditFiles.wake();
      await daemon.createToken(project.id);
      await copied(daemon);
      expect(await degraded()).to.equal(false);
    });

    for (const [what, plant] of [
      [
        'a link to /dev/null',
        (at: string) => {
          symlinkSync('/dev/null', at);
        },
      ],
      [
        'a folder',
        (at: string) => {
          mkdirSync(at);
        },
      ],
      ['a pipe', (at: string) => execFileSync('mkfifo', [at])],
    ] as const) {
      it(`${what} in its place receives no lines: changes are refused until it is gone`, async () => {
        renameSync(path, `${path}.1`);
        plant(path);
        await daemon.createToken(project.id);
        await eventually('the daemon is degraded', degraded);
        expect((await daemon.manage('POST', '/manage/tokens', { project_id: project.id })).status).to.equal(503);
        rmSync(path, { recursive: true });
        await advanceSlowly(daemon, 2);
        await eventually('changes are accepted again', async () => !(await degraded()));
        expect((await copied(daemon)).map(({ line }) => line)).to.deep.equal([7]);
        expect(await verified()).to.deep.equal(WHOLE);
      });
    }

    it('a link to the database in its place causes no write to the database', async () => {
      renameSync(path, `${path}.1`);
      symlinkSync(daemon.databasePath, path);
      await daemon.createToken(project.id);
      await eventually('the daemon is degraded', degraded);
      expect(readFileSync(daemon.databasePath).toString('latin1')).not.to.include('"prev":"');
      unlinkSync(path);
      await advanceSlowly(daemon, 2);
      await eventually('changes are accepted again', async () => !(await degraded()));
    });
  });

  describe('and a database that lacks their last records', () => {
    it('restored from an older backup: every later record is in the file, after a marker', async () => {
      await daemon.stop();
      const backup = `${daemon.databasePath}.backup`;
      copyFileSync(daemon.databasePath, backup);
      await restart();
      for (let n = 0; n < 3; n++) await daemon.createToken(project.id);
      await copied(daemon);
      await daemon.stop();
      for (const suffix of ['-wal', '-shm']) rmSync(`${daemon.databasePath}${suffix}`, { force: true });
      renameSync(backup, daemon.databasePath);
      await restart();
      await expectDoubt('the database lacks records');
      expect(
        linesOf(path)
          .slice(9)
          .map(({ line, seq, action }) => [line, seq, action]),
      ).to.deep.equal([
        [10, 6, 'audit.database_behind'],
        [11, 7, 'token.create'],
      ]);
      expect(await verified()).to.deep.equal(WHOLE);
      await daemon.stop();
      // One marker is enough.
      await restart();
      await daemon.createToken(project.id);
      await copied(daemon);
      expect(await degraded()).to.equal(false);
      expect(linesOf(path).at(-1)).to.include({ line: 12, seq: 8 });
      expect(await verified()).to.deep.equal(WHOLE);
    });

    it('a row with a forged sequence number hides no later record', async () => {
      await write(daemon, 'UPDATE audit SET seq = 900000 WHERE seq = 6');
      await expectDoubt('the database lacks records');
      expect(linesOf(path).at(-1)).to.include({ seq: 7, action: 'token.create' });
      expect((await verified()).exitCode).to.equal(9);
    });

    it('a record that is missing in the file, or in it twice, is detected', async () => {
      await daemon.stop();
      const lines = rawLines(path);
      await writeInto(daemon.databasePath, 'DELETE FROM audit_anchors');
      put(path, rechained(lines.filter((_, n) => n !== 3)));
      expect(await verified()).to.deep.equal(found('missing_record', 4));
      put(path, rechained([...lines.slice(0, 4), lines[3]!, ...lines.slice(4)]));
      expect(await verified()).to.deep.equal(found('inserted', 5));
      put(path, rechained(lines.slice(0, 5)));
      expect(await verified()).to.deep.equal(found('missing_record', 6));
      await restart();
    });
  });

  describe('and another daemon', () => {
    const second = (file: string) =>
      startDaemon({ env: { AUDIT_LOG_FILE: file, AUDIT_USE_LOG_FILE: '' } }).then(
        async (other) => {
          await other.stop();
          return null;
        },
        (error: unknown) => (error as Error).message,
      );
    const names: [string, (file: string, dir: string) => string][] = [
      [
        'a symbolic link',
        (file, dir) => {
          symlinkSync(file, join(dir, 'a.log'));
          return join(dir, 'a.log');
        },
      ],
      [
        'a hard link',
        (file, dir) => {
          linkSync(file, join(dir, 'a.log'));
          return join(dir, 'a.log');
        },
      ],
      [
        'a folder that is a link',
        (file, dir) => {
          symlinkSync(join(file, '..'), join(dir, 'a'));
          return join(dir, 'a', 'audit.log');
        },
      ],
      ['..', (file) => join(file, '..', 'x').replace(/x$/, '') + './../' + file.split('/').slice(-2).join('/')],
    ];
    for (const [what, named] of names) {
      it(`which uses the same file through ${what} is refused`, async () => {
        expect(await second(named(path, temporaryFolder()))).to.match(
          /AUDIT_LOG_FILE: .* is in use by another llmp process/,
        );
      });
    }

    it('may use a file that this daemon no longer uses', async () => {
      renameSync(path, `${path}.1`);
      await daemon.createToken(project.id);
      await copied(daemon);
      expect(await second(`${path}.1`)).to.equal(null);
    });
  });

  describe('and logrotate', () => {
    it('compressed files with any date format are read', async () => {
      await daemon.stop();
      const lines = rawLines(path);
      for (const [n, suffix] of ['.3.gz', '-20261120.gz', '-2026-11-21_1795305600', '.1'].entries()) {
        const text = textOf([lines[n]!]);
        writeFileSync(`${path}${suffix}`, suffix.endsWith('.gz') ? gzipSync(text) : text);
      }
      writeFileSync(path.replace(/\.log$/, '-20261122.log'), textOf([lines[4]!]));
      put(path, lines.slice(5));
      expect(await verified()).to.deep.equal(WHOLE);
      writeFileSync(`${path}.7.xz`, 'x');
      expect((await llmp('audit verify', { env: settings() })).err).to.include('Decompress it first');
      unlinkSync(`${path}.7.xz`);
      await restart();
    });

    it('--from-line skips lines that were removed on purpose, and nothing else', async () => {
      await daemon.stop();
      const lines = rawLines(path);
      put(path, lines.slice(2));
      expect(await verified()).to.deep.equal(found('removed', 1));
      expect(await verified('--from-line', '3')).to.deep.equal(WHOLE);
      expect(await verified('--from-line', '5')).to.deep.equal(WHOLE);
      expect(await verified('--from-line', '2')).to.deep.equal(found('removed', 2));
      put(
        path,
        lines.slice(2).map((line, n) => (n === 2 ? edited(line) : line)),
      );
      expect(await verified('--from-line', '3')).to.deep.equal(found('changed', 5));
      await restart();
    });
  });
});

describe('the use log files that someone else writes to', () => {
  let provider: Provider;
  let daemon: TestDaemon;
  let secret: string;
  let path: string;

  beforeEach(async () => {
    provider = await startProvider();
    daemon = await startDaemon({
      upstream: provider.url,
      env: { AUDIT_USE_LOG_MAX_SIZE: '2KB', AUDIT_USE_LOG_MAX_FILES: '3' },
    });
    path = usesFile(daemon);
    secret = (await daemon.createToken((await daemon.createProject()).id)).token;
  });
  afterEach(async () => {
    await daemon.stop();
    await provider.stop();
  });

  const uses = async (count: number) => {
    const before = daemon.daemon.auditFiles.uses!.head.line;
    for (let n = 0; n < count; n++) await (await daemon.call(secret)).arrayBuffer();
    await eventually('the lines are written', () => {
      daemon.clock.advance(500);
      return daemon.daemon.auditFiles.uses!.head.line === before + count;
    });
  };
  const settings = () => ({
    DATABASE_URL: daemon.databasePath,
    AUDIT_LOG_FILE: changesFile(daemon),
    LLMP_OUTPUT: 'json',
  });
  const verified = async (...args: string[]) => {
    const { exitCode, out } = await llmp(['audit', 'verify', ...args], { env: settings() });
    return { exitCode, verdict: (JSON.parse(out) as { verdict: string }).verdict };
  };
  const anchorCount = async () => {
    const rows = await daemon.daemon.stores.database.select('SELECT line FROM audit_anchors WHERE chain = $path', {
      path,
    });
    return rows.length;
  };

  it('a planted file with a huge line number displaces no anchor, and nothing after it can be rewritten', async () => {
    await uses(20);
    daemon.clock.advance(60_000);
    await eventually('there are anchors', async () => (await anchorCount()) > 1);
    const planted = `{"line":900000000,"prev":"${'a'.repeat(64)}","action":"x"}\n`;
    for (const name of ['-20000101', '.3']) writeFileSync(`${path}${name}`, planted);
    await uses(10);
    await daemon.stop();
    const files = [`${path}.3`, `${path}.2`, `${path}.1`, path].filter(
      (file) => existsSync(file) && readFileSync(file, 'utf8') !== planted,
    );
    unlinkSync(`${path}-20000101`);
    const first = linesOf(files[0]!)[0]!;
    const forged = rechained(
      files.flatMap((file) => rawLines(file)).map((line) => line.replace('/v1/models', '/v1/nothing')),
      {
        line: first.line - 1,
        digest: first.prev,
      },
    );
    for (const file of files.slice(0, -1)) unlinkSync(file);
    put(path, forged);
    expect((await verified(path)).exitCode).to.equal(9);
    expect((await verified('--uses')).exitCode).to.equal(9);
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
  });

  it('lines beyond all anchors are detected, because the database knows the chain', async () => {
    await uses(3);
    await daemon.stop();
    const forged = rechained(rawLines(path), { line: 900_000, digest: 'a'.repeat(64) });
    put(path, forged);
    expect(await verified(path)).to.deep.equal({ exitCode: 9, verdict: 'unanchored' });
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
    expect(daemon.logged.join('')).to.include('was replaced or changed');
  });

  it('are intact across rotations, and the oldest kept file cannot be removed unnoticed', async () => {
    for (let n = 0; n < 6; n++) await uses(8);
    await eventually('the first lines are removed', () => linesOf(`${path}.3`)[0]!.line > 1);
    await daemon.stop();
    expect(await verified('--uses')).to.deep.equal({ exitCode: 0, verdict: 'whole' });
    unlinkSync(`${path}.3`);
    expect(await verified('--uses')).to.deep.equal({ exitCode: 9, verdict: 'removed' });
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
  });

  it('are intact when fewer of them are kept than before', async () => {
    for (let n = 0; n < 5; n++) await uses(8);
    await eventually('three files exist', () => existsSync(`${path}.3`));
    await daemon.stop();
    const env = { AUDIT_USE_LOG_MAX_SIZE: '2KB', AUDIT_USE_LOG_MAX_FILES: '1' };
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir, env });
    await uses(8);
    await eventually('the other files are removed', () => !existsSync(`${path}.2`) && !existsSync(`${path}.3`));
    await daemon.stop();
    expect(await verified('--uses')).to.deep.equal({ exitCode: 0, verdict: 'whole' });
    daemon = await startDaemon({ upstream: provider.url, dir: daemon.dir });
  });

  it('no file exceeds AUDIT_USE_LOG_MAX_SIZE by more than one record, however many are written at once', async () => {
    const { auditFiles } = daemon.daemon;
    await uses(1);
    const ended = daemon.ended[0]!;
    for (let n = 0; n < 12; n++) auditFiles.record(ended);
    await useLines(daemon, 1);
    await eventually('all lines are written', () => {
      daemon.clock.advance(500);
      return auditFiles.uses!.head.line === 13;
    });
    const files = [`${path}.3`, `${path}.2`, `${path}.1`, path].filter((file) => existsSync(file));
    for (const file of files) expect(statSync(file).size, file).to.be.at.most(2_048);
    expect(files).to.have.lengthOf(4);
    const lines = files.flatMap((file) => linesOf(file).map(({ line }) => line));
    expect(lines).to.deep.equal(lines.map((_, index) => lines[0]! + index));
    expect(lines.at(-1)).to.equal(13);
    expect((await verified('--uses')).exitCode).to.equal(0);
  });
});
