/** What the wizard asks. Everything that was said on the line is not asked again, and what is there already is the answer proposed. */
import { databaseAddress } from '../../config/database-url.js';
import { credential } from '../../config/kinds.js';
import { settingNamed } from '../../config/settings.js';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Input } from '../input.js';
import { secretFile } from './plan.js';

export interface Answers {
  settings: Map<string, string>;
  secrets: Map<string, string>;
  systemd: boolean;
}

export interface Known {
  dir: string;
  /** In the env file, and over it what was said on the line. */
  values: Readonly<Record<string, string | undefined>>;
  /** The names that were said on the line. */
  said: ReadonlySet<string>;
  /** Where SQLite's file would go. */
  databasePath: (systemd: boolean) => string;
  /** Null: not to be asked; otherwise the answer proposed. */
  systemd: boolean | null;
}

/** What is wrong with an answer, of a setting. */
function problemOf(name: string): (answer: string) => string | null {
  const setting = settingNamed(name);
  return (answer) => (!setting || setting.takes(answer) ? null : `It must be ${setting.accepts}`);
}

export async function ask(input: Input, known: Known): Promise<Answers> {
  const answers: Answers = { settings: new Map(), secrets: new Map(), systemd: false };
  const isOpen = (name: string) => !known.said.has(name) && !known.said.has(`${name}_FILE`);
  if (isOpen('MANAGEMENT_TOKEN') && !hasManagementToken(known)) await askForManagementToken(input, answers);
  if (isOpen('LISTEN_ADDR')) await askFor(input, answers, known, 'LISTEN_ADDR', 'Listen on', '127.0.0.1:8080');
  answers.systemd = known.systemd !== null && (await input.confirm('Write a unit for systemd?', known.systemd));
  if (isOpen('DATABASE_URL')) await askForDatabase(input, answers, known);
  if (isOpen('REDIS_ADDR')) await askForRedis(input, answers, known);
  if (isOpen('UPSTREAM_BASE_URL')) {
    await askFor(input, answers, known, 'UPSTREAM_BASE_URL', 'The provider to forward to', 'https://api.openai.com');
  }
  return answers;
}

const hasManagementToken = ({ values, dir }: Known) =>
  values.MANAGEMENT_TOKEN !== undefined ||
  values.MANAGEMENT_TOKEN_FILE !== undefined ||
  existsSync(secretFile(dir, 'MANAGEMENT_TOKEN'));

/** A setting of which the default is not written down unless it is already. */
async function askFor(
  input: Input,
  { settings }: Answers,
  { values }: Known,
  name: string,
  message: string,
  fallback: string,
): Promise<void> {
  const before = values[name] ?? fallback;
  const answer = await input.line(`${message}:`, before, problemOf(name));
  if (answer !== before) settings.set(name, answer);
}

async function askForManagementToken(input: Input, { settings }: Answers): Promise<void> {
  const way = await input.choice('The management token:', [
    { value: 'new', name: 'make a new one' },
    { value: 'file', name: 'it is in a file' },
  ]);
  if (way === 'new') return;
  const path = await input.line('Which file:', '', (answer) => {
    try {
      const token = readFileSync(resolve(answer), 'utf8').replace(/\r?\n$/, '');
      return credential.parse(token) === undefined ? `It must hold ${credential.accepts}` : null;
    } catch (error) {
      return `It cannot be read: ${(error as NodeJS.ErrnoException).code ?? ''}`;
    }
  });
  settings.set('MANAGEMENT_TOKEN_FILE', resolve(path));
}

const DRIVERS = [
  { value: 'sqlite', name: 'SQLite: a file, for one instance' },
  { value: 'postgres', name: 'PostgreSQL' },
  { value: 'mysql', name: 'MySQL or MariaDB' },
] as const;

async function askForDatabase(input: Input, answers: Answers, known: Known): Promise<void> {
  const { values } = known;
  const before = DRIVERS.find(({ value }) => value === values.DB_DRIVER)?.value ?? 'sqlite';
  const driver = await input.choice('The database:', DRIVERS, before);
  const isKnown = driver === before && (values.DATABASE_URL !== undefined || values.DATABASE_URL_FILE !== undefined);
  // It may hold a password, which would be seen.
  if (isKnown && (driver !== 'sqlite' || values.DATABASE_URL === undefined)) {
    if (await input.confirm('Keep where it is, as the settings have it?', true)) return;
  }
  if (driver === 'sqlite') await askForPath(input, answers, known);
  else await askForServer(input, answers, driver);
}

async function askForPath(
  input: Input,
  { settings, systemd }: Answers,
  { values, databasePath }: Known,
): Promise<void> {
  const written = databaseAddress.parse(values.DATABASE_URL ?? '');
  const before = written?.driver === 'sqlite' ? written.path : databasePath(systemd);
  const path = await input.line('Its file:', before, problemOf('DATABASE_URL'));
  if (path === before && written?.driver === 'sqlite') return;
  settings.set('DATABASE_URL', `sqlite:${resolve(path.replace(/^sqlite:/, ''))}`);
  if (values.DB_DRIVER !== undefined) settings.set('DB_DRIVER', 'sqlite');
}

async function askForServer(input: Input, { settings, secrets }: Answers, driver: 'postgres' | 'mysql'): Promise<void> {
  const url = await input.line('Its URL, without the password:', `${driver}://llmp@127.0.0.1/llmp`, (answer) => {
    const address = databaseAddress.parse(answer);
    if (address?.driver !== driver) return `It must be like ${driver}://USER@HOST:PORT/NAME`;
    return settingNamed('DATABASE_URL')?.isSecret(answer) ? 'The password is asked for next' : null;
  });
  const password = /\/\/[^/@]+@/.test(url) ? await input.hidden('Its password (empty: none):') : '';
  settings.set('DB_DRIVER', driver);
  if (password === '') settings.set('DATABASE_URL', url);
  else secrets.set('DATABASE_URL', url.replace('@', `:${encodeURIComponent(password)}@`));
}

async function askForRedis(input: Input, { settings, secrets }: Answers, { values }: Known): Promise<void> {
  const before = values.REDIS_ADDR ?? '';
  const isAddress = problemOf('REDIS_ADDR');
  const address = await input.line('Redis, host:port (empty: none):', before, (answer) =>
    answer === '' ? null : isAddress(answer),
  );
  if (address === before || address === '') return;
  settings.set('REDIS_ADDR', address);
  const password = await input.hidden('Its password (empty: none):');
  if (password !== '') secrets.set('REDIS_PASSWORD', password);
}
