/** What `llmp init` would write, and why; it reads what is there, and writes nothing. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseAddress } from '../../config/database-url.js';
import { type Changes, withChanges } from '../../config/env-file.js';
import { credential, encryptionKey, type Kind } from '../../config/kinds.js';
import { describeSettings, settingNamed, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { LOGS_FOLDER, STATE_FOLDER } from '../../config/systemd/unit.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { type Existing, existingAt, foreign, type Planned, refuseSharedFolder, type Write } from './files.js';
import { planUnit } from './unit.js';

export interface Wanted {
  /** Absolute. */
  dir: string;
  /** What was asked for, by `NAME` or `NAME_FILE`. */
  settings: ReadonlyMap<string, string>;
  /** Secrets, each to be kept in a file of its own, by `NAME`. */
  secrets: ReadonlyMap<string, string>;
  systemd: boolean;
  /** Absolute paths of node and of llmp's script. */
  command: readonly [node: string, script: string];
}

export interface Plan {
  envFile: string;
  /** Null without a unit. */
  unit: string | null;
  planned: Planned[];
  writes: Write[];
  warnings: string[];
}

type Values = Record<string, string | undefined>;

const OWN_MODE = 0o600;

export const envFileIn = (dir: string) => join(dir, 'llmp.env');
/** The name of the file for a secret; as a credential of systemd would be called. */
export const secretFile = (dir: string, name: string) => join(dir, name.toLowerCase().replaceAll('_', '-'));

/** @throws {Failure} for what is in the way, and for settings that no daemon would start with. */
export function planFor(wanted: Wanted): Plan {
  refuseSharedFolder(wanted.dir);
  const draft = new Draft(wanted);
  for (const [name, text] of wanted.settings) draft.set(name, text);
  for (const [name, secret] of wanted.secrets) draft.keepSecret(name, secret);
  draft.own('MANAGEMENT_TOKEN', credential, () => randomBytes(24).toString('base64url'));
  draft.placeDatabase();
  return draft.finish();
}

/** The values in an env file; none where there is no file. @throws {Failure} when it is something else. */
export function valuesIn(path: string): Values {
  if (!existingAt(path)) return {};
  try {
    return { ...readEnvFile(path).values };
  } catch (error) {
    if (error instanceof SettingsError) throw foreign(path, error.problems[0] ?? 'it holds no settings');
    throw error;
  }
}

class Draft {
  readonly #wanted: Wanted;
  readonly #envFile: string;
  readonly #before: Existing | null;
  readonly #old: Values;
  readonly #values: Values;
  readonly #changes = new Map<string, string | null>();
  readonly #plan: Plan;
  /** What will be in the files that are not written yet. */
  readonly #pending = new Map<string, string>();

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
    this.#envFile = envFileIn(wanted.dir);
    this.#before = existingAt(this.#envFile);
    this.#old = valuesIn(this.#envFile);
    this.#values = { ...this.#old };
    this.#plan = { envFile: this.#envFile, unit: null, planned: [], writes: [], warnings: [] };
  }

  /** @param name `NAME` or `NAME_FILE`; the other of the two goes. */
  set(name: string, text: string): void {
    const other = referredBy(name) ?? `${name}_FILE`;
    if (this.#values[other] !== undefined) {
      this.#values[other] = undefined;
      this.#changes.set(other, null);
    }
    if (this.#values[name] === text) return;
    this.#values[name] = text;
    this.#changes.set(name, text);
  }

  /** Puts a secret that was given into a file of its own. */
  keepSecret(name: string, secret: string): void {
    const path = secretFile(this.#wanted.dir, name);
    const existing = existingAt(path);
    const isOurs = this.#old[`${name}_FILE`] === path;
    if (existing && !isOurs) throw foreign(path, 'it is not what the env file says holds this secret');
    if (existing?.text.replace(/\r?\n$/, '') !== secret)
      this.#writeSecret(path, secret, existing, `${name}: the one that you gave`);
    this.set(`${name}_FILE`, path);
  }

  /** Sees to it that there is this secret: what was there stays. */
  own(name: string, kind: Kind<unknown>, generate: () => string): void {
    if (this.#textOf(name) !== undefined) return;
    const path = secretFile(this.#wanted.dir, name);
    const existing = existingAt(path);
    if (!existing) this.#writeSecret(path, generate(), null, `${name}: a new one`);
    else if (kind.parse(existing.text.replace(/\r?\n$/, '')) === undefined) throw foreign(path, `it holds no ${name}`);
    else this.#plan.planned.push({ action: 'keep', path, what: `${name}: the one that is there` });
    this.set(`${name}_FILE`, path);
  }

  #writeSecret(path: string, secret: string, existing: Existing | null, what: string): void {
    this.#plan.planned.push({ action: existing ? 'change' : 'create', path, what });
    this.#plan.writes.push({ path, text: `${secret}\n`, mode: OWN_MODE });
    this.#pending.set(path, secret);
  }

  placeDatabase(): void {
    const { dir, systemd } = this.#wanted;
    if (this.#textOf('DATABASE_URL') === undefined && !isServer(this.#textOf('DB_DRIVER'))) {
      this.set('DATABASE_URL', `sqlite:${join(systemd ? STATE_FOLDER : dir, 'llmp.db')}`);
    }
    const driver = databaseAddress.parse(this.#textOf('DATABASE_URL') ?? '')?.driver;
    const hasDriver = this.#wanted.settings.has('DB_DRIVER');
    if (driver && !hasDriver && driver !== (this.#textOf('DB_DRIVER') ?? 'sqlite')) this.set('DB_DRIVER', driver);
    if (isServer(driver)) this.own('ENCRYPTION_KEY', encryptionKey, () => randomBytes(32).toString('base64'));
    if (this.#textOf('AUDIT_LOG_FILE') === undefined) {
      this.set('AUDIT_LOG_FILE', join(systemd ? LOGS_FOLDER : dir, 'audit.log'));
    }
  }

  /** As the daemon would find it; undefined when it is not set. */
  #textOf(name: string): string | undefined {
    const path = this.#values[`${name}_FILE`];
    const isFile = path !== undefined && settingNamed(`${name}_FILE`) === undefined;
    return isFile ? this.#contentOf(name, path) : this.#values[name];
  }

  #contentOf(name: string, path: string): string {
    try {
      return this.#pending.get(path) ?? readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      throw usage(`${name}_FILE: cannot read ${path}`, { why: (error as NodeJS.ErrnoException).code ?? '' });
    }
  }

  finish(): Plan {
    const shown = this.#shownValues();
    this.#planEnvFile(shown);
    this.#restrictOthers();
    if (this.#wanted.systemd) this.#planUnit();
    return this.#plan;
  }

  /** What `config show` would say of them. @throws {Failure} when the daemon would not start. */
  #shownValues(): ReadonlyMap<string, string | null> {
    const direct = Object.entries(this.#values).map(([name, text]) => {
      const base = referredBy(name);
      return base !== undefined && text !== undefined ? [base, this.#contentOf(base, text)] : [name, text];
    });
    const values = Object.fromEntries(direct) as Values;
    const { settings, problems, warnings } = describeSettings({}, { file: { path: this.#envFile, values } });
    if (problems.length > 0) {
      const [what = '', ...more] = problems;
      throw usage(`the daemon would not start: ${what}`, { why: more.join('; '), advice: 'Nothing was written' });
    }
    this.#plan.warnings.push(...warnings);
    return new Map(settings.map(({ name, value }) => [name, value]));
  }

  #planEnvFile(shown: ReadonlyMap<string, string | null>): void {
    const action = this.#before ? 'change' : 'create';
    const path = this.#envFile;
    for (const [name, text] of this.#changes) {
      const what =
        text === null
          ? `without ${name}`
          : `${name}=${referredBy(name) === undefined ? (shown.get(name) ?? '') : text}`;
      this.#plan.planned.push({ action, path, what });
    }
    const changes: Changes = this.#changes;
    if (changes.size === 0 && this.#before) return;
    const text = withChangesOrRefusal(this.#before?.text ?? HEADER(path), changes);
    const mode = this.#before ? restricted(this.#before.mode) : OWN_MODE;
    this.#plan.writes.push({ path, text, mode });
  }

  /** What is ours and not written anew, and yet is for others to read or write. */
  #restrictOthers(): void {
    const files = Object.entries(this.#values).flatMap(([name, path]) => (referredBy(name) && path ? [path] : []));
    const own = files.filter((path) => path.startsWith(`${this.#wanted.dir}/`));
    for (const path of new Set([this.#envFile, ...own])) {
      const existing = existingAt(path);
      if (!existing || !(existing.mode & 0o027) || this.#plan.writes.some((write) => write.path === path)) continue;
      const mode = restricted(existing.mode);
      this.#plan.planned.push({
        action: 'restrict',
        path,
        what: `mode 0${existing.mode.toString(8)} becomes 0${mode.toString(8)}`,
      });
      this.#plan.writes.push({ path, text: null, mode });
    }
  }

  #planUnit(): void {
    const { path, planned, write, warning } = planUnit({
      ...this.#wanted,
      envFile: this.#envFile,
      files: new Map(
        Object.entries(this.#values).flatMap(([name, file]) => {
          const base = referredBy(name);
          return base !== undefined && file !== undefined ? [[base, file] as const] : [];
        }),
      ),
      textOf: (name) => this.#textOf(name),
    });
    this.#plan.unit = path;
    if (planned) this.#plan.planned.push(planned);
    if (write) this.#plan.writes.push(write);
    if (warning !== null) this.#plan.warnings.push(warning);
  }
}

/** Whoever gave it to a group alone had a reason. */
const restricted = (mode: number) => (mode & 0o007 ? OWN_MODE : mode & 0o640);

const isServer = (driver: string | undefined) => driver === 'postgres' || driver === 'mysql';

/** The setting whose value is in the file that `NAME_FILE` names; undefined for a setting itself, such as AUDIT_LOG_FILE. */
function referredBy(name: string): string | undefined {
  const base = /^(\w+)_FILE$/.exec(name)?.[1];
  return base !== undefined && !settingNamed(name) && settingNamed(base) ? base : undefined;
}

const HEADER = (path: string) => `# Settings of llmp: llmp daemon --env-file ${path}
# llmp init changes what it is asked to, and leaves all other lines alone. What there is to set: llmp.env(5)
`;

function withChangesOrRefusal(text: string, changes: Changes): string {
  try {
    return withChanges(text, changes);
  } catch (error) {
    if (error instanceof RangeError) throw new Failure(EXIT.usage, error.message, { code: 'usage', cause: error });
    throw error;
  }
}
