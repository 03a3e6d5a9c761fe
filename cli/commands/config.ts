/** `llmp config …`: shows and checks the daemon's settings, read as the daemon reads them. */
import { describeSettings, type Environment, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { command } from '../command.js';
import { OF_REQUESTS } from '../globals.js';
import { flag } from '../option.js';
import { EXIT, Failure } from '../../console/failure.js';
import { envFile } from './services.js';
import type { TableColumn, View } from '../../console/table.js';
import { daemonEnvironment } from '../unit-environment.js';

const show = command({
  path: ['config', 'show'],
  ignores: OF_REQUESTS,
  summary: 'show the effective settings, with secrets masked (exits with 9 if a setting is wrong)',
  examples: [
    ['config show', 'show settings from the environment and defaults'],
    ['config show --origin --env-file /etc/llmp/llmp.env', 'also read a file, and show the source of each setting'],
  ],
  options: { envFile, origin: flag('--origin', 'show the source of each setting') },
  async run(invocation) {
    const { options, output } = invocation;
    const { rows, problems } = read(await daemonEnvironment(invocation, options.envFile), options.envFile);
    const file = options.envFile === undefined ? '' : ` --env-file ${options.envFile}`;
    const failure = new Failure(
      EXIT.checkFailed,
      `the settings have ${problems.length} ${problems.length === 1 ? 'error' : 'errors'}`,
      { code: 'settings_wrong', why: problems[0] ?? '', advice: `List all errors: llmp config validate${file}` },
    );
    // The file cannot be read, so there is nothing to show.
    if (rows.length === 0) throw failure;
    if (options.origin) await output.list(rows, originView);
    else
      await output.list(
        rows.map(({ name, value }) => ({ name, value })),
        settingView,
      );
    if (problems.length === 0) return EXIT.done;
    output.fail(failure);
    return EXIT.checkFailed;
  },
});

const validate = command({
  path: ['config', 'validate'],
  ignores: OF_REQUESTS,
  summary: 'check the settings and list all errors (exits with 9 if there are any)',
  examples: [['config validate --env-file /etc/llmp/llmp.env', 'check a changed file before a restart']],
  options: { envFile },
  async run(invocation) {
    const { options, output } = invocation;
    const { problems, warnings } = read(await daemonEnvironment(invocation, options.envFile), options.envFile);
    const isValid = problems.length === 0;
    for (const warning of warnings) output.warn(warning);
    await output.list(
      problems.map((problem) => ({ problem })),
      problemView,
      { valid: isValid, problems, warnings },
    );
    if (isValid) output.note('The settings are valid.');
    return isValid ? EXIT.done : EXIT.checkFailed;
  },
});

interface Setting {
  name: string;
  value: string;
}
type SettingWithOrigin = Setting & { origin: string };

interface Reading {
  rows: SettingWithOrigin[];
  problems: readonly string[];
  warnings: readonly string[];
}

function read(env: Environment, path: string | undefined): Reading {
  try {
    const file = path === undefined ? undefined : readEnvFile(path);
    const { settings, problems, warnings } = describeSettings(env, { file });
    const rows = settings.map(({ name, value, origin }) => ({ name, value: value ?? '', origin }));
    return { rows, problems, warnings };
  } catch (error) {
    if (error instanceof SettingsError) return { rows: [], problems: error.problems, warnings: [] };
    throw error;
  }
}

const settingColumns: TableColumn<Setting>[] = [
  { title: 'NAME', rank: 0, show: ({ name }) => name },
  { title: 'VALUE', rank: 0, show: ({ value }) => value },
];

const settingView: View<Setting> = {
  idOf: ({ name }) => name,
  fields: ['name', 'value'],
  columns: settingColumns,
};

const originView: View<SettingWithOrigin> = {
  idOf: ({ name }) => name,
  fields: ['name', 'value', 'origin'],
  columns: [...settingColumns, { title: 'ORIGIN', rank: 0, show: ({ origin }) => origin }],
};

const problemView: View<{ problem: string }> = {
  idOf: ({ problem }) => problem,
  fields: ['problem'],
  columns: [{ title: 'PROBLEM', rank: 0, show: ({ problem }) => problem }],
};

export const configCommands = [show, validate];
