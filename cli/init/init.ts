/** `llmp init`: from nothing to a server that can be started. What is there stays as it is unless something else is asked for. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
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
import { shellWord } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import { type Planned, writeAll } from './files.js';
import { envFileIn, type Plan, planFor, valuesIn } from './plan.js';
import type { Shell } from '../shell.js';
import type { View } from '../../console/table.js';

const options = {
  dir: text('--dir <FOLDER>', 'target folder (default: /etc/llmp for root, otherwise ~/.config/llmp)'),
  set: texts('--set <NAME=value...>', 'a setting; secrets as NAME_FILE=FILE (can be repeated)'),
  nonInteractive: flag('--non-interactive', 'do not prompt; keep existing values or use defaults'),
  systemd: flag('--no-systemd', 'do not write a systemd unit'),
  dryRun,
};

export const initCommand = command({
  path: ['init'],
  summary: 'set up a server: management token, database, provider, systemd; shows a plan before it writes',
  examples: [
    ['init', 'prompts, shows the plan, writes the files, and checks the result'],
    ['init --non-interactive --no-systemd --dir ./llmp', 'use defaults, in one folder'],
    ['init --non-interactive --set LISTEN_ADDR=:8080 --set DATABASE_URL_FILE=/root/url', 'for a script'],
    ['init -n', 'only show the plan'],
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
      if (isAsked && !(await input.confirm('Write this?', true))) throw usage('not confirmed, nothing was written');
    }
    return finish(invocation, wanted.dir, plan);
  },
});

const NOTHING = 'Nothing to do: everything is there as asked.';

type Initing = Invocation<typeof options>;

/** Writes, looks whether it is good, and says what comes next. */
async function finish(invocation: Initing, dir: string, plan: Plan): Promise<number> {
  const { shell, output } = invocation;
  // From here on ^C waits until the files are whole.
  const enough = new AbortController();
  const interrupted = shell.interrupted().then(() => {
    enough.abort();
    return null;
  });
  writeAll(dir, plan.writes);
  if (plan.writes.length > 0) output.note(`Written. Looking whether it is good.`);
  const asking = { ...invocation, shell: { ...shell, env: withoutSettings(shell.env) } };
  const findings = await Promise.race([diagnose(asking, plan.envFile, enough.signal), interrupted]);
  if (findings === null) return EXIT.interrupted;
  const next = nextCommands(shell, plan);
  await show(invocation, plan, findings, next);
  return hasFailed(findings) ? EXIT.checkFailed : EXIT.done;
}

async function show(invocation: Initing, plan: Plan, findings: Finding[], next: readonly string[]): Promise<void> {
  const { output } = invocation;
  if (output.format === 'json') {
    const whole = { env_file: plan.envFile, planned: plan.planned, ok: !hasFailed(findings), checks: findings, next };
    await output.list(plan.planned, plannedView, whole);
    return;
  }
  await showFindings(invocation, findings);
  output.note(summaryOf(findings));
  output.note('Next:');
  for (const line of next) output.note(`  ${line}`);
}

// ---- what is wanted

/** `--no-input`, which every command takes, means the same here. */
const isInteractive = ({ options, globals }: Initing) => options.nonInteractive !== true && globals.input !== false;

async function wantedOf(invocation: Initing) {
  const { options: given, input, shell } = invocation;
  const dir = resolve(given.dir ?? defaultFolder(shell.env));
  const said = settingsSaid(given.set ?? []);
  const asks = isInteractive(invocation);
  if (asks && !input.canAsk) {
    throw usage('init asks, and there is no terminal to ask at', {
      advice: 'llmp init --non-interactive --set NAME=value …',
    });
  }
  const maySystemd = given.systemd !== false;
  const answers = asks ? await askAll(input, { dir, said, maySystemd }) : null;
  const systemd = answers?.systemd ?? maySystemd;
  if (systemd && !/^[\w./@+-]+$/.test(dir)) {
    throw usage('the path of the folder is none for a unit of systemd', {
      advice: 'Use letters and digits, or --no-systemd',
    });
  }
  return {
    dir,
    settings: new Map([...(answers?.settings ?? []), ...said]),
    secrets: answers?.secrets ?? new Map<string, string>(),
    systemd,
    command: [process.execPath, fileURLToPath(new URL('../main.js', import.meta.url))] as const,
  };
}

interface Asked {
  dir: string;
  said: ReadonlyMap<string, string>;
  maySystemd: boolean;
}

async function askAll(input: Initing['input'], { dir, said, maySystemd }: Asked) {
  const { ask } = await import('./questions.js');
  return ask(input, {
    dir,
    values: { ...valuesIn(envFileIn(dir)), ...Object.fromEntries(said) },
    said: new Set(said.keys()),
    databasePath: (systemd) => join(systemd ? STATE_FOLDER : dir, 'llmp.db'),
    systemd: maySystemd ? existsSync('/run/systemd/system') : null,
  });
}

function defaultFolder({ XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return '/etc/llmp';
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'llmp');
}

/** @throws {Failure} for what is no setting, or not a good one; a secret is refused, for others can read the line. */
function settingsSaid(given: readonly string[]): Map<string, string> {
  return new Map(given.map(settingSaid));
}

function settingSaid(given: string): readonly [string, string] {
  const [, name = '', value = ''] = /^([A-Z_0-9]+)=(.*)$/s.exec(given) ?? [];
  if (name === '') throw usage('--set takes NAME=value', { advice: 'Such as --set LISTEN_ADDR=127.0.0.1:8080' });
  const setting = settingNamed(name);
  if (!setting) {
    const isFile = settingNamed(name.replace(/_FILE$/, '')) && name.endsWith('_FILE');
    if (!isFile) throw usage(`--set ${name}: there is no such setting`, { advice: 'All of them: llmp config show' });
    return [name, resolve(value)];
  }
  if (setting.isSecret(value)) {
    throw usage(`--set ${name} would show a secret to everybody on this machine`, {
      advice: `Put it into a file, and say --set ${name}_FILE=FILE`,
    });
  }
  if (!setting.takes(value)) throw usage(`--set ${name} must be ${setting.accepts}`);
  return [name, name === 'DATABASE_URL' ? absolute(value) : value];
}

/** The daemon may be started somewhere else. */
function absolute(url: string): string {
  const address = databaseAddress.parse(url);
  return address?.driver === 'sqlite' ? `sqlite:${resolve(address.path)}` : url;
}

// ---- afterwards

/** So that what was written is looked at, and not what happens to be set here. */
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
    `MANAGEMENT_TOKEN_FILE=${word(values.MANAGEMENT_TOKEN_FILE ?? 'FILE')}`,
    ...(server === 'http://127.0.0.1:8080' ? [] : [`LLMP_SERVER=${word(server)}`]),
  ];
  return [
    unit === null ? `${program} daemon --env-file ${word(envFile)}` : `systemctl enable --now ${word(unit)}`,
    `export ${exported.join(' ')}; ${program} project create --name web`,
    `${program} token generate --duration 48`,
  ];
}

const word = (path: string) => (/^[\w./:@+-]+$/.test(path) ? path : shellWord(path));

function* linesOf(planned: readonly Planned[]): Generator<string> {
  yield 'The plan:';
  let before = '';
  for (const { action, path, what } of planned) {
    if (path !== before) yield `  ${action} ${path}`;
    before = path;
    yield `      ${what}`;
  }
}

const plannedView: View<Planned> = {
  idOf: ({ path }) => path,
  fields: ['action', 'path', 'what'],
  columns: [
    { title: 'ACTION', rank: 0, show: ({ action }) => action },
    { title: 'PATH', rank: 0, show: ({ path }) => path },
    { title: 'WHAT', rank: 0, show: ({ what }) => what },
  ],
  details: {},
};
