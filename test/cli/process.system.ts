import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { LAUNCHER } from '../../packaging/application.js';
import { write } from '../../packaging/files.js';
import { MANAGEMENT_TOKEN, temporaryFolder } from '../support/daemon.js';
import { eventually } from '../support/eventually.js';
import { aTop } from '../support/factories.js';
import { perTest } from '../support/per-test.js';
import { BUNDLE, ended, MAIN, start } from './processes.js';
import { answerJson, responds, startStandIn } from './stand-in.js';

describe('the process', () => {
  const daemon = perTest(() => startStandIn());
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    env = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN };
  });

  it('writes data to stdout, messages to stderr, and ends with the exit code', async () => {
    daemon.answer = responds([{ id: 'one' }]);
    const listed = await ended(start(['project', 'list', '-o', 'id'], env));
    expect(listed).to.include({ exitCode: 0, out: 'one\n', err: '' });
    const refused = await ended(start(['project', 'lst'], env));
    expect(refused.exitCode).to.equal(2);
    expect(refused.out).to.equal('');
  });

  it('ends at once at a signal while a program of --jq runs, also if the command handles the signal', async () => {
    for (const [args, signal, exitCode] of [
      [['project', 'list'], 'SIGINT', 130],
      [['top', '--watch'], 'SIGTERM', 143],
    ] as const) {
      daemon.asked.length = 0;
      daemon.answer = (req, res) => {
        answerJson(res, 200, req.url?.startsWith('/manage/top') ? aTop() : []);
      };
      const child = start([...args, '--jq', 'def f: f; f'], env);
      const ending = ended(child);
      while (daemon.asked.length === 0) await sleep(20);
      await sleep(200); // The program has begun. If not, the test is weaker, but succeeds.
      child.kill(signal);
      expect((await ending).exitCode, args.join(' ')).to.equal(exitCode);
    }
  });

  it('says in hints how it was started, also from a folder that is not in the PATH', async () => {
    const folder = join(temporaryFolder(), 'a folder');
    write(join(folder, 'bin/llmp'), LAUNCHER, 0o755);
    mkdirSync(join(folder, 'libexec'));
    symlinkSync(process.execPath, join(folder, 'bin/node'));
    symlinkSync(BUNDLE, join(folder, 'libexec/llmp'));
    const hint = async (program: string, path = '') => {
      const { stderr } = await promisify(execFile)('sh', ['-c', '"$0" token lst || true', program], {
        env: { PATH: `${path}${process.env.PATH ?? ''}` },
      });
      return /See: (.*) help token$/m.exec(stderr)?.[1];
    };
    const launcher = join(folder, 'bin/llmp');
    expect(await hint(launcher)).to.equal(`'${launcher}'`);
    expect(await hint('llmp', `${folder}/bin:`)).to.equal('llmp');
    const linked = temporaryFolder();
    symlinkSync(launcher, join(linked, 'llmp'));
    expect(await hint(join(linked, 'llmp'))).to.equal(`'${launcher}'`);
    expect(await hint('llmp', `${linked}:`)).to.equal('llmp');
    expect((await ended(start(['token', 'lst']))).err).to.include(`See: node '${MAIN}' help token`);
  });

  it('exits silently with 141 when the reader of its output is gone', async () => {
    const asked = new Promise<() => void>((resolve) => {
      daemon.answer = (_req, res) => {
        resolve(() => {
          answerJson(res, 200, [{ id: 'one' }]);
        });
      };
    });
    const child = start(['project', 'list', '-o', 'id'], env);
    const answer = await asked;
    child.stdout.destroy();
    answer();
    const [err, [exitCode]] = await Promise.all([text(child.stderr), once(child, 'close') as Promise<[number]>]);
    expect({ exitCode, err }).to.deep.equal({ exitCode: 141, err: '' });
  });

  it('ends by the signal when it is interrupted', async () => {
    const asked = new Promise<void>((resolve) => {
      daemon.answer = () => {
        resolve();
      };
    });
    const child = start(['project', 'list'], env);
    await asked;
    child.kill('SIGINT');
    const [, signal] = (await once(child, 'close')) as [number | null, string];
    expect(signal).to.equal('SIGINT');
  });

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`ends what is watched with ${code} at ${signal}`, async () => {
      daemon.answer = responds({ status: 'ok', missing: [], degraded: [], incidents: [] });
      const child = start(['status', '--watch'], env);
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      expect(line.toString()).to.include('"status":"ready"');
      child.kill(signal);
      expect(await once(child, 'close')).to.deep.equal([code, null]);
    });
  }

  it('lets the daemon continue when the reader of its log is gone', async () => {
    const dir = temporaryFolder();
    const child = start(['daemon'], {
      MANAGEMENT_TOKEN,
      LISTEN_ADDR: '127.0.0.1:0',
      DATABASE_URL: join(dir, 'llmp.db'),
      AUDIT_LOG_FILE: join(dir, 'audit.log'),
      SHUTDOWN_DELAY: '0',
    });
    try {
      let log = '';
      child.stdout.on('data', (piece: Buffer) => (log += piece.toString()));
      await eventually('it listens', () => log.includes('listening'));
      child.stdout.destroy();
    } finally {
      child.kill('SIGTERM');
    }
    expect(await once(child, 'close')).to.deep.equal([0, null]);
  });
});
