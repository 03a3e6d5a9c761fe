/** Commands that read the daemon's settings in a shell, on a machine where systemd runs the daemon. */
import { expect } from 'chai';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { shippedFiles } from '../../config/systemd/shipped.js';
import { unitText } from '../../config/systemd/unit.js';
import { type Finding } from '../../daemon/ops/doctor.js';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder } from '../support/daemon.js';
import { type Captured, llmp } from './captured.js';

/** A machine with llmp installed as documented: env file, credential and folders below `dir`. */
class Installed {
  readonly dir = temporaryFolder();
  readonly envFile = join(this.dir, 'llmp.env');
  readonly token = join(this.dir, 'management-token');
  readonly state = join(this.dir, 'state');
  readonly logs = join(this.dir, 'logs');

  constructor(settings = '') {
    for (const folder of [this.state, this.logs]) mkdirSync(folder, { mode: 0o700 });
    writeFileSync(this.envFile, settings, { mode: 0o600 });
    writeFileSync(this.token, `${MANAGEMENT_TOKEN}\n`, { mode: 0o600 });
  }

  /** Installs a unit as the output of `systemctl cat`. Its folders are below `dir`. */
  install(name: string, text: string): void {
    const below = (parent: string, path: string) => relative(parent, path);
    const local = text
      .replaceAll('/etc/llmp/llmp.env', this.envFile)
      .replaceAll('/etc/llmp/llmp-%i.env', join(this.dir, 'llmp-%i.env'))
      .replaceAll('/etc/llmp/credentials/management-token', this.token)
      .replace(/^StateDirectory=.*$/m, `StateDirectory=${below('/var/lib', this.state)}`)
      .replace(/^LogsDirectory=.*$/m, `LogsDirectory=${below('/var/log', this.logs)}`);
    writeFileSync(join(this.dir, name), local);
    const systemctl = join(this.dir, 'systemctl');
    writeFileSync(systemctl, `#!/bin/sh\nshift 2\ncd ${this.dir} && exec cat "$1" 2>/dev/null\n`);
    chmodSync(systemctl, 0o755);
  }

  run(line: string, env: NodeJS.ProcessEnv = {}): Promise<Captured> {
    return llmp(line, { env: { PATH: `${this.dir}:/usr/bin:/bin`, LC_ALL: 'C.UTF-8', ...env } });
  }
}

const shipped = (name: string) => shippedFiles().get(name) ?? '';

describe('the settings of a daemon under systemd, read at a shell', () => {
  let umask: number;
  beforeEach(() => {
    umask = process.umask(0o077); // As the process has it.
  });
  afterEach(() => {
    process.umask(umask);
  });

  it('include the credentials and folders of its unit', async () => {
    const machine = new Installed('LISTEN_ADDR=127.0.0.1:9\n');
    machine.install('llmp.service', shipped('llmp.service'));
    const validated = await machine.run(`config validate --env-file ${machine.envFile}`);
    expect(validated.err).to.include('Using the credentials and folders of llmp.service.');
    expect(validated.exitCode).to.equal(0);

    const { out } = await machine.run(`config show --origin --json --env-file ${machine.envFile}`);
    const rows = JSON.parse(out) as { name: string; value: string; origin: string }[];
    const row = (name: string) => rows.find((each) => each.name === name);
    expect(row('MANAGEMENT_TOKEN')?.origin).to.equal(`MANAGEMENT_TOKEN_FILE ${machine.token}`);
    expect(row('DATABASE_URL')?.value).to.equal(`sqlite:${machine.state}/llmp.db`);
    expect(row('AUDIT_LOG_FILE')?.value).to.equal(`${machine.logs}/audit.log`);
  });

  it('are those of the instance whose env file it is', async () => {
    const machine = new Installed();
    machine.install('llmp@7.service', shipped('llmp@.service'));
    const envFile = join(machine.dir, 'llmp-7.env');
    writeFileSync(envFile, '', { mode: 0o600 });
    const { err, exitCode } = await machine.run(`config validate --env-file ${envFile}`);
    expect(err).to.include('llmp@7.service');
    expect(exitCode).to.equal(0);
  });

  it('are found for a unit that `llmp init` wrote', async () => {
    const machine = new Installed();
    const files = new Map([['MANAGEMENT_TOKEN', machine.token]]);
    const command = ['/usr/bin/node', '/opt/llmp'] as const;
    machine.install('llmp.service', unitText({ command, envFile: machine.envFile, files, needsLowPort: false }));
    const { err, exitCode } = await machine.run(`config validate --env-file ${machine.envFile}`);
    expect(err).to.include('llmp.service');
    expect(exitCode).to.equal(0);
  });

  it('are those of the command if no unit uses the env file, or the environment sets them', async () => {
    const machine = new Installed();
    machine.install('llmp.service', shipped('llmp.service'));
    const other = join(machine.dir, 'other.env');
    writeFileSync(other, '', { mode: 0o600 });
    const elsewhere = await machine.run(`config validate --env-file ${other}`);
    expect(elsewhere.exitCode).to.equal(9);
    expect(elsewhere.out).to.include('MANAGEMENT_TOKEN is required');

    const { out } = await machine.run(`config show --origin --env-file ${machine.envFile}`, {
      MANAGEMENT_TOKEN,
      DATABASE_URL: 'sqlite:/tmp/mine.db',
    });
    expect(out)
      .to.match(/MANAGEMENT_TOKEN\s+\*+\s+environment/)
      .and.to.match(/DATABASE_URL\s+sqlite:\/tmp\/mine\.db\s+environment/);
  });

  it('follow drop-ins, where an empty value clears those before', async () => {
    const machine = new Installed();
    const dropIn = `\n[Service]\nLoadCredential=\nLoadCredential=management-token:${machine.dir}/moved/management-token\n`;
    machine.install('llmp.service', shipped('llmp.service') + dropIn);
    mkdirSync(join(machine.dir, 'moved'));
    writeFileSync(join(machine.dir, 'moved/management-token'), `${MANAGEMENT_TOKEN}\n`, { mode: 0o600 });
    const { out } = await machine.run(`config show --origin --env-file ${machine.envFile}`);
    expect(out).to.include(`MANAGEMENT_TOKEN_FILE ${machine.dir}/moved/management-token`);
  });

  it("let doctor, audit verify, migrate and rekey use the daemon's data", async () => {
    const machine = new Installed(`LISTEN_ADDR=127.0.0.1:9\n`);
    machine.install('llmp.service', shipped('llmp.service'));
    const daemon = await startDaemon({
      dir: machine.state,
      env: { AUDIT_LOG_FILE: join(machine.logs, 'audit.log') },
    });
    await daemon.createProject();
    await daemon.stop();
    const own = `--env-file ${machine.envFile}`;

    const verified = await machine.run(`audit verify ${own}`);
    expect(verified.exitCode, verified.err).to.equal(0);
    expect(verified.err).to.match(/\b1 lines?\b/);

    const migrated = await machine.run(`migrate status --direct ${own}`);
    expect(migrated.exitCode, migrated.err).to.equal(0);
    const key = readFileSync(join(machine.state, 'llmp.db.key'), 'utf8').trim();
    const rekeyed = await machine.run(`migrate rekey -n ${own}`, {
      ENCRYPTION_KEY: Buffer.alloc(32, 9).toString('base64'),
      ENCRYPTION_KEY_PREVIOUS: key,
    });
    expect(rekeyed.err).to.include('Would re-encrypt 1 upstream key');

    const { out } = await machine.run(`doctor --json ${own}`);
    const { checks } = JSON.parse(out) as { checks: Finding[] };
    const failed = checks.filter(({ check, state }) => state === 'failed' && check !== 'upstream');
    expect(failed, JSON.stringify(failed)).to.be.empty;
    const database = checks.filter(({ check }) => check.startsWith('database')).map(({ evidence }) => evidence);
    expect(database.join('\n')).to.include(machine.state);
  });
});
