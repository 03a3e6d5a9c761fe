/** `llmp init`: sets up a server so that it can be started. Existing files and settings do not change unless the user asks for it. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { packageRoot } from '../../config/package-root.js';
import { databaseAddress } from '../../config/database-url.js';
import { listenAddress } from '../../config/kinds.js';
import { describeSettings, settingNamed } from '../../config/settings.js';
import { STATE_FOLDER } from '../../config/systemd/unit.js';
import { dryRun } from '../batch.js';
import { command, type Invocation } from '../command.js';
import { flag, text, texts } from '../option.js';
import type { Finding } from '../../daemon/ops/doctor.js';
import { urlOf } from '../commands/doctor-daemon.js';
import { diagnose, hasFailed, showFindings, summaryOf } from '../commands/doctor.js';
import { shortShellWord } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import { type PlannedChange, writeAll } from './files.js';
import { envFileIn, type Plan, planFor, valuesIn } from './plan.js';
import type { Shell } from '../shell.js';
import type { View } from '../../console/table.js';

const options = {
  dir: text('--dir <FOLDER>', 'target folder (default: /etc/llmp for root, ~/.config/llmp for other users)'),
  set: texts('--set <NAME=value...>', 'a setting; give secrets as NAME_FILE=FILE (can be repeated)'),
  nonInteractive: flag('--non-interactive', 'do not prompt; keep existing values or use defaults'),
  systemd: flag('--no-systemd', 'do not write a systemd unit'),
  dryRun,
};

export const initCommand = command({
  path: ['init'],
  runsUnbundled: true,
  summary: 'set up a server: management token, database, provider and systemd unit',
  examples: [
    ['init', 'prompt, show the plan, write the files, and check the result'],
    ['init --non-interactive --no-systemd --dir ./llmp', 'use the defaults, with all files in one folder'],
    ['init --non-interactive --set LISTEN_ADDR=:8080 --set DATABASE_URL_FILE=/root/url', 'set up from a script'],
    ['init -n', 'show the plan without writing anything'],
  ],
  options,
  async run(invocation) {
    const { output, input, globals } = invocation;
    const wanted = await wantedOf(invocation);
    const plan = planFor(wanted);
    for (const warning of plan.warnings) output.warn(warning);
    if (invocation.options.dryRun) {
      await output.list(plan.planned, plannedView, { planned: plan.planned });
      output.note(plan.writes.length === 0 ? NOTHING : 'Nothing was written.');
      return EXIT.done;
    }
    if (plan.writes.length === 0) output.note(NOTHING);
    else {
      for (const line of linesOf(plan.planned)) output.note(line);
      const isAsked = isInteractive(invocation) && !globals.yes;
      if (isAsked && !(await input.confirm('Write these files?', true)))
        throw usage('not confirmed; nothing was written');
    }
    return finish(invocation, wanted.dir, plan);
  },
});

const NOTHING = 'Nothing to do: all files are up to date.';

type InitInvocation = Invocation<typeof options>;

/** Writes the files, runs the checks of `llmp doctor`, and prints the next commands. */
async function finish(invocation: InitInvocation, dir: string, plan: Plan): Promise<number> {
  const { shell, output } = invocation;
  // From here on ^C takes effect only after all files are written.
  const controller = new AbortController();
  const interrupted = shell.interrupted().then(() => {
    controller.abort();
    return null;
  });
  writeAll(dir, plan.writes);
  if (plan.writes.length > 0) output.note('Files written. Checking the setup.');
  const asking = { ...invocation, shell: { ...shell, env: withoutSettings(shell.env) } };
  const findings = await Promise.race([diagnose(asking, plan.envFile, { signal: controller.signal }), interrupted]);
  if (findings === null) return EXIT.interrupted;
  const next = nextCommands(shell, plan);
  await show(invocation, plan, findings, next);
  return hasFailed(findings) ? EXIT.checkFailed : EXIT.done;
}

async function show(
  invocation: InitInvocation,
  plan: Plan,
  findings: Finding[],
  next: readonly string[],
): Promise<void> {
  const { output } = invocation;
  if (output.isStructured) {
    const whole = { env_file: plan.envFile, planned: plan.planned, ok: !hasFailed(findings), checks: findings, next };
    await output.list(plan.planned, plannedView, whole);
    return;
  }
  await showFindings(invocation, findings);
  output.note(summaryOf(findings));
  output.note('Next:');
  for (const line of next) output.note(`  ${line}`);
}

// ---- the request

/** The global option `--no-input` has the same effect as `--non-interactive`. */
const isInteractive = ({ options, globals }: InitInvocation) =>
  options.nonInteractive !== true && globals.input !== false;

async function wantedOf(invocation: InitInvocation) {
  const { options: given, input, shell } = invocation;
  const dir = resolve(given.dir ?? defaultFolder(shell.env));
  const setOnLine = settingsGiven(given.set ?? []);
  const asks = isInteractive(invocation);
  if (asks && !input.canAsk) {
    throw usage('init needs a terminal for its questions', {
      advice: 'Without a terminal use: llmp init --non-interactive --set NAME=value …',
    });
  }
  const maySystemd = given.systemd !== false;
  const answers = asks ? await askAll(input, { dir, setOnLine, maySystemd }) : null;
  const systemd = answers?.systemd ?? maySystemd;
  if (systemd && !/^[\w./@+-]+$/.test(dir)) {
    throw usage('a systemd unit cannot use this folder: its path has special characters', {
      advice: 'Use only letters, digits and . / @ + _ - in the path, or --no-systemd',
    });
  }
  return {
    dir,
    settings: new Map([...(answers?.settings ?? []), ...setOnLine]),
    secrets: answers?.secrets ?? new Map<string, string>(),
    systemd,
    command: [process.execPath, join(packageRoot(), 'dist/cli/main.js')] as const,
  };
}

interface QuestionInputs {
  dir: string;
  setOnLine: ReadonlyMap<string, string>;
  maySystemd: boolean;
}

async function askAll(input: InitInvocation['input'], { dir, setOnLine, maySystemd }: QuestionInputs) {
  const { ask } = await import('./questions.js');
  return ask(input, {
    dir,
    values: { ...valuesIn(envFileIn(dir)), ...Object.fromEntries(setOnLine) },
    given: new Set(setOnLine.keys()),
    databasePath: (systemd) => join(systemd ? STATE_FOLDER : dir, 'llmp.db'),
    systemd: maySystemd ? existsSync('/run/systemd/system') : null,
  });
}

function defaultFolder({ XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return '/etc/llmp';
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'llmp');
}

/** @throws {Failure} for an unknown setting, an invalid value, or a secret, because other users can see the command line. */
function settingsGiven(given: readonly string[]): Map<string, string> {
  return new Map(given.map(settingGiven));
}

function settingGiven(given: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([A-Z_0-9]+)=(.*)$/s.exec(given) ?? [];
  if (name === '') throw usage('--set must be NAME=value', { advice: 'For example --set LISTEN_ADDR=127.0.0.1:8080' });
  const setting = settingNamed(name);
  if (!setting) {
    const isFile = settingNamed(name.replace(/_FILE$/, '')) && name.endsWith('_FILE');
    if (!isFile) throw usage(`--set ${name}: unknown setting`, { advice: 'List all settings: llmp config show' });
    return [name, resolve(value)];
  }
  if (setting.isSecret(value)) {
    throw usage(`--set ${name} would show a secret to all users of this machine`, {
      advice: `Put it into a file and use --set ${name}_FILE=FILE`,
    });
  }
  if (!setting.takes(value)) throw usage(`--set ${name} must be ${setting.accepts}`);
  return [name, name === 'DATABASE_URL' ? absolute(value) : value];
}

/** Makes the path of a SQLite file absolute: the daemon may be started in another folder. */
function absolute(url: string): string {
  const address = databaseAddress.parse(url);
  return address?.driver === 'sqlite' ? `sqlite:${resolve(address.path)}` : url;
}

// ---- after writing

/** The environment without llmp's variables, so that the checks use the written settings only. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { settings } = describeSettings({});
  const names = new Set(['LLMP_SERVER', 'LLMP_CONTEXT', ...settings.flatMap(({ name }) => [name, `${name}_FILE`])]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.has(name)));
}

function nextCommands({ program }: Shell, { envFile, unit }: Plan): string[] {
  const values = valuesIn(envFile);
  const address = listenAddress.parse(values.MANAGEMENT_LISTEN_ADDR ?? values.LISTEN_ADDR ?? '127.0.0.1:8080');
  const server = address ? urlOf(address) : '';
  const exported = [
    `MANAGEMENT_TOKEN_FILE=${shortShellWord(values.MANAGEMENT_TOKEN_FILE ?? 'FILE')}`,
    ...(server === 'http://127.0.0.1:8080' ? [] : [`LLMP_SERVER=${shortShellWord(server)}`]),
  ];
  return [
    unit === null
      ? `${program} daemon --env-file ${shortShellWord(envFile)}`
      : `systemctl enable --now ${shortShellWord(unit)}`,
    `export ${exported.join(' ')}; ${program} project create --name web`,
    `${program} token generate --duration 48`,
  ];
}

function* linesOf(planned: readonly PlannedChange[]): Generator<string> {
  yield 'Plan:';
  let before = '';
  for (const { action, path, what } of planned) {
    if (path !== before) yield `  ${action} ${path}`;
    before = path;
    yield `      ${what}`;
  }
}

const plannedView: View<PlannedChange> = {
  idOf: ({ path }) => path,
  fields: ['action', 'path', 'what'],
  columns: [
    { title: 'ACTION', rank: 0, show: ({ action }) => action },
    { title: 'PATH', rank: 0, show: ({ path }) => path },
    { title: 'WHAT', rank: 0, show: ({ what }) => what },
  ],
};
