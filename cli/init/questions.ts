/** The questions of `llmp init`. Settings given on the command line are not asked for; existing values are proposed as answers. */
import { databaseAddress } from '../../config/database-url.js';
import { credential } from '../../config/kinds.js';
import { readTextFile, whyUnreadable } from '../../config/text-file.js';
import { settingNamed } from '../../config/settings.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Input } from '../input.js';
import { secretFile } from './plan.js';

export interface Answers {
  settings: Map<string, string>;
  secrets: Map<string, string>;
  systemd: boolean;
}

export interface WizardState {
  dir: string;
  /** Values from the env file, overridden by those from the command line. */
  values: Readonly<Record<string, string | undefined>>;
  /** The names of the settings given on the command line. */
  given: ReadonlySet<string>;
  /** The default path of the SQLite file. */
  databasePath: (systemd: boolean) => string;
  /** The proposed answer to whether a systemd unit is written; null: do not ask. */
  systemd: boolean | null;
}

/** @returns a function that tells what is wrong with an answer for this setting. */
function problemOf(name: string): (answer: string) => string | null {
  const setting = settingNamed(name);
  return (answer) => (!setting || setting.takes(answer) ? null : `It must be ${setting.accepts}`);
}

export async function ask(input: Input, known: WizardState): Promise<Answers> {
  const answers: Answers = { settings: new Map(), secrets: new Map(), systemd: false };
  const isOpen = (name: string) => !known.given.has(name) && !known.given.has(`${name}_FILE`);
  if (isOpen('MANAGEMENT_TOKEN') && !hasManagementToken(known)) await askForManagementToken(input, answers);
  if (isOpen('LISTEN_ADDR')) await askFor(input, answers, known, 'LISTEN_ADDR', 'Listen on', '127.0.0.1:8080');
  answers.systemd = known.systemd !== null && (await input.confirm('Write a systemd unit?', known.systemd));
  if (isOpen('DATABASE_URL')) await askForDatabase(input, answers, known);
  if (isOpen('REDIS_ADDR')) await askForRedis(input, answers, known);
  if (isOpen('UPSTREAM_BASE_URL')) {
    await askFor(input, answers, known, 'UPSTREAM_BASE_URL', 'Base URL of the provider', 'https://api.openai.com');
  }
  return answers;
}

const hasManagementToken = ({ values, dir }: WizardState) =>
  values.MANAGEMENT_TOKEN !== undefined ||
  values.MANAGEMENT_TOKEN_FILE !== undefined ||
  existsSync(secretFile(dir, 'MANAGEMENT_TOKEN'));

/** Asks for a setting. An answer equal to the existing value, or to the default, is not written. */
async function askFor(
  input: Input,
  { settings }: Answers,
  { values }: WizardState,
  name: string,
  message: string,
  fallback: string,
): Promise<void> {
  const before = values[name] ?? fallback;
  const answer = await input.line(`${message}:`, before, problemOf(name));
  if (answer !== before) settings.set(name, answer);
}

async function askForManagementToken(input: Input, { settings }: Answers): Promise<void> {
  const way = await input.choice('Management token:', [
    { value: 'new', name: 'generate a new one' },
    { value: 'file', name: 'use an existing file' },
  ]);
  if (way === 'new') return;
  const path = await input.line('Path of the file:', '', (answer) => {
    try {
      const token = readTextFile(resolve(answer)).replace(/\r?\n$/, '');
      return credential.parse(token) === undefined ? `It must contain ${credential.accepts}` : null;
    } catch (error) {
      return `Cannot read it: ${whyUnreadable(error)}`;
    }
  });
  settings.set('MANAGEMENT_TOKEN_FILE', resolve(path));
}

const DRIVERS = [
  { value: 'sqlite', name: 'SQLite: a file, for a single instance' },
  { value: 'postgres', name: 'PostgreSQL' },
  { value: 'mysql', name: 'MySQL or MariaDB' },
] as const;

async function askForDatabase(input: Input, answers: Answers, known: WizardState): Promise<void> {
  const { values } = known;
  const before = DRIVERS.find(({ value }) => value === values.DB_DRIVER)?.value ?? 'sqlite';
  const driver = await input.choice('Database:', DRIVERS, before);
  const isKnown = driver === before && (values.DATABASE_URL !== undefined || values.DATABASE_URL_FILE !== undefined);
  // The URL is not proposed as an answer: it may contain a password.
  if (isKnown && (driver !== 'sqlite' || values.DATABASE_URL === undefined)) {
    if (await input.confirm('Keep the current database URL?', true)) return;
  }
  if (driver === 'sqlite') await askForPath(input, answers, known);
  else await askForServer(input, answers, driver);
}

async function askForPath(
  input: Input,
  { settings, systemd }: Answers,
  { values, databasePath }: WizardState,
): Promise<void> {
  const written = databaseAddress.parse(values.DATABASE_URL ?? '');
  const before = written?.driver === 'sqlite' ? written.path : databasePath(systemd);
  const path = await input.line('Database file:', before, problemOf('DATABASE_URL'));
  if (path === before && written?.driver === 'sqlite') return;
  settings.set('DATABASE_URL', `sqlite:${resolve(path.replace(/^sqlite:/, ''))}`);
  if (values.DB_DRIVER !== undefined) settings.set('DB_DRIVER', 'sqlite');
}

async function askForServer(input: Input, { settings, secrets }: Answers, driver: 'postgres' | 'mysql'): Promise<void> {
  const url = await input.line('Database URL, without the password:', `${driver}://llmp@127.0.0.1/llmp`, (answer) => {
    const address = databaseAddress.parse(answer);
    if (address?.driver !== driver) return `It must have the form ${driver}://USER@HOST:PORT/NAME`;
    return settingNamed('DATABASE_URL')?.isSecret(answer) ? 'Omit the password; it is asked for next' : null;
  });
  const password = /\/\/[^/@]+@/.test(url) ? await input.hidden('Database password (empty for none):') : '';
  settings.set('DB_DRIVER', driver);
  if (password === '') settings.set('DATABASE_URL', url);
  else secrets.set('DATABASE_URL', url.replace('@', `:${encodeURIComponent(password)}@`));
}

async function askForRedis(input: Input, { settings, secrets }: Answers, { values }: WizardState): Promise<void> {
  const before = values.REDIS_ADDR ?? '';
  const isAddress = problemOf('REDIS_ADDR');
  const address = await input.line('Redis, as host:port (empty for none):', before, (answer) =>
    answer === '' ? null : isAddress(answer),
  );
  if (address === before || address === '') return;
  settings.set('REDIS_ADDR', address);
  const password = await input.hidden('Redis password (empty for none):');
  if (password !== '') secrets.set('REDIS_PASSWORD', password);
}
