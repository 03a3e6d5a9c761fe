/** Doctor check of the unit of systemd, if one is installed. */
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { type DoctorContext, failed, type CheckGroup, type Finding, ok, skipped, warning } from './doctor-finding.js';

const UNIT = 'llmp.service';
// The default folders of systemd; SYSTEMD_UNIT_PATH overrides them.
const FOLDERS =
  '/etc/systemd/system:/run/systemd/system:/usr/local/lib/systemd/system:/usr/lib/systemd/system:/lib/systemd/system';
const RESPONSE_MS = 3_000;

export function systemdChecks(context: DoctorContext): CheckGroup {
  return { check: 'systemd', run: (signal) => systemd(context, signal) };
}

async function* systemd({ env }: DoctorContext, signal: AbortSignal): AsyncGenerator<Finding> {
  const check = 'systemd';
  const folders = (env.SYSTEMD_UNIT_PATH || FOLDERS).split(':').filter((folder) => folder !== '');
  const paths = await Promise.all(folders.map((folder) => existing(join(folder, UNIT))));
  const [path] = paths.flatMap((each) => each ?? []);
  if (path === undefined) {
    yield skipped(check, `no ${UNIT} is installed`);
    return;
  }
  const facts = await show(env, signal);
  if (!facts) {
    yield ok(check, `${path} exists; systemd is not running`);
    return;
  }
  const state = facts.get('ActiveState') ?? 'unknown';
  const shown = `${facts.get('FragmentPath') || path}: ${state} (${facts.get('SubState') ?? ''}), ${facts.get('UnitFileState') || 'not enabled'}`;
  if (facts.get('LoadState') === 'bad-setting' || facts.get('LoadState') === 'error') {
    yield failed(check, `systemd cannot load ${path}`, `Find the error: systemd-analyze verify ${path}`);
  } else if (state === 'failed') {
    yield failed(
      check,
      `${shown}, exit ${facts.get('ExecMainStatus') ?? '?'}`,
      `Read the log: journalctl -u ${UNIT} -n 50`,
    );
  } else if (facts.get('NeedDaemonReload') === 'yes') {
    yield warning(check, `${shown}; the file was changed after systemd loaded it`, 'systemctl daemon-reload');
  } else if (state !== 'active') {
    yield warning(check, shown, `systemctl enable --now ${UNIT}`);
  } else {
    yield ok(check, shown);
  }
}

async function existing(path: string): Promise<string | null> {
  try {
    await access(path);
    return path;
  } catch {
    return null;
  }
}

const FACTS = 'LoadState,ActiveState,SubState,UnitFileState,FragmentPath,ExecMainStatus,NeedDaemonReload';

/** Null if systemctl fails, for example because systemd is not running. */
function show({ PATH }: DoctorContext['env'], signal: AbortSignal): Promise<ReadonlyMap<string, string> | null> {
  return new Promise((resolve) => {
    const options = { timeout: RESPONSE_MS, signal, env: { PATH, LC_ALL: 'C' } };
    execFile('systemctl', ['show', UNIT, '-p', FACTS], options, (error, stdout) => {
      const pairs = stdout.split('\n').map((line) => line.split('=', 2) as [string, string]);
      resolve(error ? null : new Map(pairs));
    });
  });
}
