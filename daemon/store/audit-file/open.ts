/** The audit files of a daemon, as configured in its settings. */
import { resolve } from 'node:path';
import { type Settings, SettingsError } from '../../../config/settings.js';
import type { RequestEnded } from '../../core/events.js';
import { withTimeout } from '../../core/with-timeout.js';
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import type { AuditStatus } from '../../core/status.js';
import { PathInUse } from '../lock.js';
import { AnchorWriter } from './anchor-writer.js';
import { AuditFile, HUNG_MS } from './audit-file.js';
import type { AnchorStore } from './chain.js';
import { ChangeLog } from './change-log.js';
import { UseLog } from './use-log.js';

const MAX_START_MS = 1_000;

export interface AuditFilesOptions {
  settings: Pick<Settings, 'auditLogFile' | 'auditUseLogFile' | 'auditUseLogMaxBytes' | 'auditUseLogMaxFiles'>;
  records: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  anchors: AnchorStore;
  clock: Clock;
  log: Log;
}

export interface AuditFiles {
  /** The change log and the use log; null if not configured. */
  changes: AuditFile | null;
  uses: AuditFile | null;
  useLog: UseLog | null;
  /** Call after the migrations. Resolves when the files are up to date, or after a timeout. */
  begin(): Promise<void>;
  /** Records a completed request. */
  record(ended: RequestEnded): void;
  /** Call when there may be records that another instance committed. */
  wake(): void;
  /** Call when other files may be at the paths. */
  reopen(): void;
  /** Why changes are refused; null while they are accepted. */
  readonly whyNoChanges: string | null;
  /** Whether a file cannot be written or was tampered with. */
  readonly isFailing: boolean;
  /** Of both files, since startup. */
  readonly status: AuditStatus;
  /** Whether a file system call is pending that may never return. */
  readonly isHung: boolean;
  /** Writes pending lines synchronously when the process is about to end. */
  flushSync(): void;
  close(): Promise<void>;
}

/** @throws {SettingsError} when another process uses a file. */
export async function openAuditFiles(options: AuditFilesOptions): Promise<AuditFiles> {
  const { settings, records, anchors, clock, log } = options;
  const { auditUseLogMaxBytes: maxBytes, auditUseLogMaxFiles: maxFiles } = settings;
  const changes = fileOf(options, settings.auditLogFile, null);
  const uses = fileOf(options, settings.auditUseLogFile, { maxBytes, maxFiles });
  const files = [changes, uses].filter((each) => each !== null);
  try {
    if (changes) await claimFor(changes.file, 'AUDIT_LOG_FILE');
    if (uses) await claimFor(uses.file, 'AUDIT_USE_LOG_FILE');
  } catch (error) {
    await Promise.all(files.map(({ file }) => file.close()));
    throw error;
  }
  const changeLog =
    changes &&
    new ChangeLog({
      file: changes.file,
      store: records,
      lastAnchor: () => anchors.last(changes.file.path),
      clock,
      log,
    });
  const useLog = uses && new UseLog({ file: uses.file, clock, log });
  const isFailing = () => files.some(({ file }) => file.whyFailing !== null || file.doubt !== null);
  const close = async () => {
    await changeLog?.close();
    await useLog?.close();
    for (const { file, anchoring } of files) {
      await anchoring.close();
      await file.close();
    }
  };
  return {
    changes: changes?.file ?? null,
    uses: uses?.file ?? null,
    useLog,
    async begin() {
      for (const { anchoring } of files) anchoring.begin();
      // A hung disk must not prevent a daemon from starting or stopping.
      await withTimeout(clock, MAX_START_MS, Promise.all([changeLog?.begin(), useLog?.write()]), () => undefined);
    },
    record(ended) {
      useLog?.record(ended);
    },
    wake() {
      changeLog?.wake();
    },
    reopen() {
      for (const { file } of files) file.reopen();
      changeLog?.wake();
    },
    get whyNoChanges() {
      const why = changes?.file.whyFailing ?? null;
      return why && `the audit file cannot be written: ${why}`;
    },
    get isFailing() {
      return isFailing();
    },
    get status() {
      const sum = (of: 'lines' | 'failures') => files.reduce((all, { file }) => all + file[of], 0);
      const status: AuditStatus['status'] = files.length === 0 ? 'off' : isFailing() ? 'failing' : 'ok';
      return { status, records: sum('lines'), failures: sum('failures'), usesDropped: useLog?.dropped ?? 0 };
    },
    get isHung() {
      return files.some(({ file }) => file.isHung);
    },
    flushSync() {
      useLog?.flushSync();
    },
    close: () => withTimeout(clock, HUNG_MS + 1_000, close(), () => undefined),
  };
}

interface Anchored {
  file: AuditFile;
  anchoring: AnchorWriter;
}

function fileOf(
  { anchors, clock, log }: AuditFilesOptions,
  name: string | null,
  rotation: { maxBytes: number; maxFiles: number } | null,
): Anchored | null {
  if (name === null) return null;
  const path = resolve(name);
  const file: AuditFile = new AuditFile({
    path,
    clock,
    log,
    lastAnchor: () => anchors.last(path),
    rotation,
    onRotated: () => {
      void anchoring.rotated();
    },
    onDoubt: () => {
      void anchoring.anchor();
    },
  });
  const anchoring = new AnchorWriter(file, anchors, rotation?.maxFiles ?? null, clock, log);
  return { file, anchoring };
}

async function claimFor(file: AuditFile, setting: string): Promise<void> {
  try {
    await file.claim();
  } catch (error) {
    throw error instanceof PathInUse ? new SettingsError([`${setting}: ${error.message}`]) : error;
  }
}
