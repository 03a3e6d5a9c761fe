/** The documentation of settings, generated from the declarations: docs/settings.md, the example file and llmp.env(5). */
import { SECTIONS, type Setting } from './declarations.js';
import { chapter, entries, heading, paragraphs, roff } from './roff.js';
import { documentedDefault } from './settings.js';

const sections = Object.entries(SECTIONS).map(([title, declared]) => ({
  title,
  settings: Object.values<Setting<unknown>>(declared),
}));

function defaultInTable(setting: Setting<unknown>): string {
  if (setting.isRequired) return 'required';
  const text = documentedDefault(setting);
  if (text === null) return 'none';
  return typeof setting.default === 'string' ? `\`${text}\`` : text;
}

// ---- docs/settings.md

/** @returns the page as Markdown: an introduction, then a table for each section of the declarations. */
export function settingsPage(): string {
  const lines = [
    '<!-- Written by `npm run docs` from config/declarations.ts. Do not edit it here. -->',
    '',
    '# Settings',
    '',
    'llmp reads its settings from environment variables, or from a file with one `NAME=value` per line that you pass with `--env-file`.',
    '[config/llmp.env.example](../config/llmp.env.example) is a file to start from. The manual page is `llmp.env(5)`.',
    '',
    'For each setting, llmp uses the first of these that exists:',
    '',
    '1. the environment variable `NAME`;',
    '2. the environment variable `NAME_FILE`: the path of a file that contains the value;',
    '3. `NAME` or `NAME_FILE` in the file that `--env-file` names;',
    '4. under systemd, the credential with the name in lower case and dashes, for example `management-token`.',
    '',
    'Durations are written `500ms`, `120s`, `2m` or `1h`. Sizes are written `50MB` (powers of 1000) or `50MiB` (powers of 1024).',
    'llmp rejects a value that it does not understand, and it lists all wrong settings at once.',
    '',
    '- `llmp config validate` checks the settings without starting a daemon.',
    '- `llmp config show --origin` shows the effective settings and where each came from. Secrets are masked.',
    '- SIGHUP makes a running daemon read the file again. It applies the settings marked "yes" under SIGHUP; the others need a restart.',
    '  If a setting is wrong, the daemon keeps all its current settings and logs the error.',
  ];
  for (const { title, settings } of sections) {
    lines.push(
      '',
      `## ${title}`,
      '',
      '| Name | Default | SIGHUP | Meaning | Accepted values |',
      '| --- | --- | --- | --- | --- |',
    );
    for (const it of settings) {
      const cells = [`\`${it.name}\``, defaultInTable(it), it.isReloadable ? 'yes' : 'no', it.meaning, it.kind.accepts];
      lines.push(`| ${cells.map(inCell).join(' | ')} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

const inCell = (text: string) => text.replaceAll('|', '\\|');

// ---- llmp.env.example

const COMMENT_WIDTH = 98;

export function exampleFile(): string {
  const lines = [
    '# Settings of llmp: llmp daemon --env-file FILE. Written by npm run docs; llmp.env(5) says more.',
    '# What is commented out shows the default. Each may also be given as NAME_FILE, the path of a file that holds it.',
  ];
  for (const { title, settings } of sections) {
    lines.push('', `# ---- ${title}`);
    for (const setting of settings) {
      const fixed = typeof setting.default === 'string' ? setting.default : undefined;
      lines.push('', ...wrapped(remarksOn(setting, fixed === undefined)).map((line) => `# ${line}`));
      lines.push(`${setting.isRequired ? '' : '#'}${setting.name}=${fixed ?? ''}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < COMMENT_WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function remarksOn(setting: Setting<unknown>, withDefault: boolean): string {
  const text = documentedDefault(setting);
  const remarks = [setting.meaning];
  if (setting.isRequired) remarks.push('Required.');
  else if (withDefault && text !== null) remarks.push(`Default: ${text}.`);
  if (setting.isReloadable) remarks.push('Reloaded on SIGHUP.');
  return remarks.join(' ');
}

// ---- llmp.env(5)

export function manualPage(): string {
  return [
    ...heading('llmp.env', 5, 'config/declarations.ts'),
    ...chapter('NAME', ['llmp.env - settings of the llmp daemon']),
    ...chapter('SYNOPSIS', ['`llmp daemon --env-file` /etc/llmp/llmp.env']),
    ...chapter('DESCRIPTION', [
      'Settings are environment variables. A file given by `--env-file` holds the same, NAME=value a line; blank lines and lines that begin with # are passed over, and a value may stand in quotes. A line that is anything else is refused.',
      'Each setting is looked for in this order, and the first hit counts:',
    ]),
    ...entries([
      ['NAME', 'In the environment.'],
      ['NAME_FILE', 'In the environment: the path of a file that holds the value. One newline at its end is dropped.'],
      ['NAME, NAME_FILE', 'In the file of `--env-file`.'],
      [
        'credential',
        'Under systemd: the credential of the same name in lower case with dashes, such as `LoadCredential=management-token:/etc/llmp/management-token`.',
      ],
    ]),
    ...paragraphs([
      'NAME and NAME_FILE in one place are refused. `llmp daemon --check` reports all problems at once and connects to nothing; `llmp daemon --print-config` shows what is in force and where it came from, secrets masked. A name that is no setting is warned about.',
    ]),
    ...chapter('UNITS', []),
    ...entries([
      ['durations', '500ms, 120s, 2m, 1h. A bare 0 is taken only where it says what it means.'],
      ['sizes', '10KB, 50MB, 2GB are powers of 1000; 10KiB, 50MiB, 2GiB are powers of 1024.'],
      ['true, false', 'No other word for them.'],
    ]),
    ...paragraphs(['Nothing is guessed: 50, -1s, 1e3 or an empty value is refused.']),
    '.SH SETTINGS',
    ...sections.flatMap(({ title, settings }) => [
      `.SS ${roff(title)}`,
      ...entries(settings.map((it) => [it.name, remarksForManual(it)])),
    ]),
    ...chapter('SIGNALS', [
      'SIGHUP makes the daemon read the file, and the files it names, again. What is marked as reloaded is applied; requests in flight keep what they began with. Another setting that changed is named in a warning and waits for a restart. If anything is wrong, nothing changes, and the log says what.',
    ]),
    ...chapter('EXIT STATUS', ['With 78 the daemon says that settings are wrong, one line each on standard error.']),
    ...chapter('FILES', []),
    ...entries([
      ['/etc/llmp/llmp.env', 'Where the systemd unit has them; readable by the group llmp, writable by root alone.'],
      ['./data/llmp.db', 'The database, unless DATABASE_URL says otherwise.'],
      ['./data/llmp.db.key', 'The key beside it, without ENCRYPTION_KEY.'],
    ]),
    ...chapter('SEE ALSO', ['llmp(1), systemd.exec(5)']),
    '',
  ].join('\n');
}

function remarksForManual(setting: Setting<unknown>): string {
  const fallback = setting.isRequired || documentedDefault(setting) !== null ? '' : ' Default: none.';
  return `${remarksOn(setting, true)}${fallback} Accepted: ${setting.kind.accepts}.`;
}
