/** The audit files of a daemon, as configured in its settings. */
import { resolve } from 'node:path';
import { type Settings, SettingsError } from '../../../config/settings.js';
import type { RequestEnded } from '../../core/events.js';
import { withTimeout } from '../../core/timing.js';
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import type { AuditStatus } from '../../core/status.js';
import { PathInUse } from '../lock.js';
import type { AnchorStore } from './anchors.js';
import { AuditFile, type AuditFileOptions } from './audit-file.js';
import { ChangeLog } from './change-log.js';
import { HUNG_MS } from './disk.js';
import { UseLog } from './use-log.js';

const MAX_START_MS = 1_000;

export interface AuditFilesOptions {
  settings: Pick<Settings, 'auditLogFile' | 'auditUseLogFile' | 'auditUseLogMaxBytes' | 'auditUseLogMaxFiles'>;
  records: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  anchors: AnchorStore;
  clock: Clock;
  log: Log;
}

/** @throws {SettingsError} when another process uses a file. */
export async function openAuditFiles(options: AuditFilesOptions): Promise<AuditFiles> {
  const opened = new AuditFiles(options);
  const { changes, uses } = opened;
  try {
    if (changes) await claimFor(changes, 'AUDIT_LOG_FILE');
    if (uses) await claimFor(uses, 'AUDIT_USE_LOG_FILE');
  } catch (error) {
    await changes?.close();
    await uses?.close();
    throw error;
  }
  return opened;
}

export class AuditFiles {
  readonly #clock: Clock;
  /** Null if not configured. */
  readonly changes: AuditFile | null;
  readonly uses: AuditFile | null;
  readonly useLog: UseLog | null;
  readonly #changeLog: ChangeLog | null;
  readonly #files: readonly AuditFile[];

  constructor({ settings, records, anchors, clock, log }: AuditFilesOptions) {
    const fileAt = (name: string | null, rotation: AuditFileOptions['rotation']) =>
      name === null ? null : new AuditFile({ path: resolve(name), anchors, clock, log, rotation });
    const { auditUseLogMaxBytes: maxBytes, auditUseLogMaxFiles: maxFiles } = settings;
    this.#clock = clock;
    this.changes = fileAt(settings.auditLogFile, null);
    this.uses = fileAt(settings.auditUseLogFile, { maxBytes, maxFiles });
    this.#files = [this.changes, this.uses].filter((each) => each !== null);
    this.#changeLog = this.changes && new ChangeLog({ file: this.changes, store: records, anchors, clock, log });
    this.useLog = this.uses && new UseLog({ file: this.uses, clock, log });
  }

  /** Call after the migrations. Resolves when the files are up to date, or after a timeout: a hung disk must not prevent a start. */
  async begin(): Promise<void> {
    const copied = Promise.all([this.#changeLog?.begin(), this.useLog?.write()]);
    await withTimeout(this.#clock, MAX_START_MS, copied, () => undefined);
    for (const file of this.#files) file.keepAnchored();
  }

  /** Records a completed request. */
  record(ended: RequestEnded): void {
    this.useLog?.record(ended);
  }

  /** Call when another instance may have committed records, or another file may be at the path. */
  wake(): void {
    this.#changeLog?.wake();
  }

  /** Why changes are refused; null while they are accepted. */
  get whyNoChanges(): string | null {
    const why = this.changes?.whyFailing ?? null;
    return why && `the audit file cannot be written: ${why}`;
  }

  /** Whether a file cannot be written or was tampered with. */
  get isFailing(): boolean {
    return this.#files.some((file) => file.whyFailing !== null || file.doubt !== null);
  }

  /** Of both files, since startup. */
  get status(): AuditStatus {
    const sum = (of: 'lines' | 'failures') => this.#files.reduce((all, file) => all + file[of], 0);
    return {
      status: this.#files.length === 0 ? 'off' : this.isFailing ? 'failing' : 'ok',
      records: sum('lines'),
      failures: sum('failures'),
      usesDropped: this.useLog?.dropped ?? 0,
    };
  }

  /** Whether a file system call is pending that may never return. */
  get isHung(): boolean {
    return this.#files.some((file) => file.isHung);
  }

  /** Writes pending lines synchronously when the process is about to end. */
  flushSync(): void {
    this.useLog?.flushSync();
  }

  /** Writes everything, unless the files cannot be written. A hung disk must not prevent a daemon from stopping. */
  close(): Promise<void> {
    return withTimeout(this.#clock, HUNG_MS + 1_000, this.#close(), () => undefined);
  }

  async #close(): Promise<void> {
    await this.#changeLog?.close();
    await this.useLog?.close();
    for (const file of this.#files) await file.close();
  }
}

async function claimFor(file: AuditFile, setting: string): Promise<void> {
  try {
    await file.claim();
  } catch (error) {
    throw error instanceof PathInUse ? new SettingsError([`${setting}: ${error.message}`]) : error;
  }
}
