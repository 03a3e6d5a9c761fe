/** Plans what `llmp init` writes. Reads existing files, and writes nothing. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { databaseAddress } from '../../config/database-url.js';
import { type Changes, withChanges } from '../../config/env-lines.js';
import { credential, encryptionKey, type Kind } from '../../config/kinds.js';
import { describeSettings, settingNamed, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { readTextFile, whyUnreadable } from '../../config/text-file.js';
import { LOGS_FOLDER, STATE_FOLDER } from '../../config/systemd/unit.js';
import { EXIT, Failure, usage } from '../../console/failure.js';
import { type Existing, existingAt, foreign, type PlannedChange, refuseSharedFolder, type FileWrite } from './files.js';
import { planUnit } from './unit.js';

export interface InitRequest {
  /** Absolute. */
  dir: string;
  /** Requested settings by `NAME` or `NAME_FILE`. */
  settings: ReadonlyMap<string, string>;
  /** Secrets by `NAME`. Each is written to its own file. */
  secrets: ReadonlyMap<string, string>;
  systemd: boolean;
  /** Absolute paths of node and of llmp's script. */
  command: readonly [node: string, script: string];
}

export interface Plan {
  envFile: string;
  /** Null without a unit. */
  unit: string | null;
  planned: PlannedChange[];
  writes: FileWrite[];
  warnings: string[];
}

type Values = Record<string, string | undefined>;

const OWN_MODE = 0o600;

export const envFileIn = (dir: string) => join(dir, 'llmp.env');
/** The file for a secret. It has the name that a systemd credential for the setting has. */
export const secretFile = (dir: string, name: string) => join(dir, name.toLowerCase().replaceAll('_', '-'));

/** @throws {Failure} if an existing file cannot be used, or a daemon would not start with the settings. */
export function planFor(wanted: InitRequest): Plan {
  refuseSharedFolder(wanted.dir);
  const draft = new PlanBuilder(wanted);
  for (const [name, text] of wanted.settings) draft.set(name, text);
  for (const [name, secret] of wanted.secrets) draft.storeSecret(name, secret);
  draft.ensureSecret('MANAGEMENT_TOKEN', credential, () => randomBytes(24).toString('base64url'));
  draft.setStorage();
  return draft.finish();
}

/** The values in an env file; none if the file does not exist. @throws {Failure} if it is not an env file. */
export function valuesIn(path: string): Values {
  if (!existingAt(path)) return {};
  try {
    return { ...readEnvFile(path).values };
  } catch (error) {
    if (error instanceof SettingsError) throw foreign(path, error.problems[0] ?? 'it contains no settings');
    throw error;
  }
}

class PlanBuilder {
  readonly #wanted: InitRequest;
  readonly #envFile: string;
  readonly #before: Existing | null;
  readonly #old: Values;
  readonly #values: Values;
  readonly #changes = new Map<string, string | null>();
  readonly #plan: Plan;
  /** Contents of planned secret files, by path. */
  readonly #pending = new Map<string, string>();

  constructor(wanted: InitRequest) {
    this.#wanted = wanted;
    this.#envFile = envFileIn(wanted.dir);
    this.#before = existingAt(this.#envFile);
    this.#old = valuesIn(this.#envFile);
    this.#values = { ...this.#old };
    this.#plan = { envFile: this.#envFile, unit: null, planned: [], writes: [], warnings: [] };
  }

  /** @param name `NAME` or `NAME_FILE`; the other form is removed. */
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

  /** Plans a file for a secret that the user entered. */
  storeSecret(name: string, secret: string): void {
    const path = secretFile(this.#wanted.dir, name);
    const existing = existingAt(path);
    const isOurs = this.#old[`${name}_FILE`] === path;
    if (existing && !isOurs) throw foreign(path, `the env file does not name it as ${name}_FILE`);
    if (existing?.text.replace(/\r?\n$/, '') !== secret)
      this.#writeSecret(path, secret, existing, `${name}: the value that you entered`);
    this.set(`${name}_FILE`, path);
  }

  /** Ensures that a secret exists. An existing one does not change. */
  ensureSecret(name: string, kind: Kind<unknown>, generate: () => string): void {
    if (this.#textOf(name) !== undefined) return;
    const path = secretFile(this.#wanted.dir, name);
    const existing = existingAt(path);
    if (!existing) this.#writeSecret(path, generate(), null, `${name}: a new, random value`);
    else if (kind.parse(existing.text.replace(/\r?\n$/, '')) === undefined)
      throw foreign(path, `it does not contain a valid ${name}`);
    else this.#plan.planned.push({ action: 'keep', path, what: `${name}: the existing value` });
    this.set(`${name}_FILE`, path);
  }

  #writeSecret(path: string, secret: string, existing: Existing | null, what: string): void {
    this.#plan.planned.push({ action: existing ? 'change' : 'create', path, what });
    this.#plan.writes.push({ path, text: `${secret}\n`, mode: OWN_MODE });
    this.#pending.set(path, secret);
  }

  /** Sets defaults for the database and the audit file, and ensures an encryption key for a database server. */
  setStorage(): void {
    const { dir, systemd } = this.#wanted;
    if (this.#textOf('DATABASE_URL') === undefined && !isServer(this.#textOf('DB_DRIVER'))) {
      this.set('DATABASE_URL', `sqlite:${join(systemd ? STATE_FOLDER : dir, 'llmp.db')}`);
    }
    const driver = databaseAddress.parse(this.#textOf('DATABASE_URL') ?? '')?.driver;
    const hasDriver = this.#wanted.settings.has('DB_DRIVER');
    if (driver && !hasDriver && driver !== (this.#textOf('DB_DRIVER') ?? 'sqlite')) this.set('DB_DRIVER', driver);
    if (isServer(driver)) this.ensureSecret('ENCRYPTION_KEY', encryptionKey, () => randomBytes(32).toString('base64'));
    if (this.#textOf('AUDIT_LOG_FILE') === undefined) {
      this.set('AUDIT_LOG_FILE', join(systemd ? LOGS_FOLDER : dir, 'audit.log'));
    }
  }

  /** The value as the daemon would read it; undefined if it is not set. */
  #textOf(name: string): string | undefined {
    const path = this.#values[`${name}_FILE`];
    const isFile = path !== undefined && settingNamed(`${name}_FILE`) === undefined;
    return isFile ? this.#contentOf(name, path) : this.#values[name];
  }

  #contentOf(name: string, path: string): string {
    try {
      return this.#pending.get(path) ?? readTextFile(path).replace(/\r?\n$/, '');
    } catch (error) {
      throw usage(`${name}_FILE: cannot read ${path}`, { why: whyUnreadable(error) });
    }
  }

  finish(): Plan {
    const shown = this.#shownValues();
    this.#planEnvFile(shown);
    this.#restrictOthers();
    if (this.#wanted.systemd) this.#planUnit();
    return this.#plan;
  }

  /** The values as `config show` prints them. @throws {Failure} if the daemon would not start. */
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
        text === null ? `remove ${name}` : `${name}=${referredBy(name) === undefined ? (shown.get(name) ?? '') : text}`;
      this.#plan.planned.push({ action, path, what });
    }
    const changes: Changes = this.#changes;
    if (changes.size === 0 && this.#before) return;
    const text = withChangesOrRefusal(this.#before?.text ?? HEADER(path), changes);
    const mode = this.#before ? restricted(this.#before.mode) : OWN_MODE;
    this.#plan.writes.push({ path, text, mode });
  }

  /** Restricts the mode of existing files that are not rewritten and that other users can read or write. */
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

/** The mode without write access for the group and any access for others. Read access for a group alone is deliberate, and stays. */
const restricted = (mode: number) => (mode & 0o007 ? OWN_MODE : mode & 0o640);

const isServer = (driver: string | undefined) => driver === 'postgres' || driver === 'mysql';

/** The setting whose value is in the file that `NAME_FILE` names; undefined for a setting itself, such as AUDIT_LOG_FILE. */
function referredBy(name: string): string | undefined {
  const base = /^(\w+)_FILE$/.exec(name)?.[1];
  return base !== undefined && !settingNamed(name) && settingNamed(base) ? base : undefined;
}

const HEADER = (path: string) => `# Settings of llmp: llmp daemon --env-file ${path}
# llmp init changes only the settings that it is asked to change. All settings are described in llmp.env(5).
`;

function withChangesOrRefusal(text: string, changes: Changes): string {
  try {
    return withChanges(text, changes);
  } catch (error) {
    if (error instanceof RangeError) throw new Failure(EXIT.usage, error.message, { code: 'usage', cause: error });
    throw error;
  }
}
