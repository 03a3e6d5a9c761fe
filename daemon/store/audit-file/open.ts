/** The audit files of a daemon, as its settings name them. */
import { resolve } from 'node:path';
import { type Settings, SettingsError } from '../../../config/settings.js';
import type { RequestEnded } from '../../core/events.js';
import { inTime } from '../../core/in-time.js';
import type { Clock, Log, RecordStore } from '../../core/ports.js';
import type { AuditStatus } from '../../core/status.js';
import { PathInUse } from '../lock.js';
import { Anchoring } from './anchoring.js';
import { AuditFile, HUNG_MS } from './audit-file.js';
import type { AnchorStore } from './chain.js';
import { ChangeLog } from './change-log.js';
import { UseLog } from './use-log.js';

const MOST_START_MS = 1_000;

export interface AuditFilesOptions {
  settings: Pick<Settings, 'auditLogFile' | 'auditUseLogFile' | 'auditUseLogMaxBytes' | 'auditUseLogMaxFiles'>;
  records: Pick<RecordStore, 'recordsAfter' | 'lastRecord' | 'onCommitted'>;
  anchors: AnchorStore;
  clock: Clock;
  log: Log;
}

export interface AuditFiles {
  /** The copy of the records of changes; null where there is none. So with the uses. */
  changes: AuditFile | null;
  uses: AuditFile | null;
  useLog: UseLog | null;
  /** From when on there are tables. Resolves when the files were seen to, or that takes too long. */
  begin(): Promise<void>;
  /** Takes note of a request that is over. */
  keep(ended: RequestEnded): void;
  /** There may be records that were not committed here. */
  wake(): void;
  /** Other files may be at their paths. */
  reopen(): void;
  /** Why no change may be made; null while they may. */
  readonly whyNoChanges: string | null;
  /** Whether a file cannot be written, or is not what was written. */
  readonly isFailing: boolean;
  /** Of both files, since the start. */
  readonly status: AuditStatus;
  /** Whether a call is under way that may never return. */
  readonly isHung: boolean;
  /** The process ends at once: what is not written yet is, without waiting. */
  writeAtOnce(): void;
  close(): Promise<void>;
}

/** @throws {SettingsError} when a file is another process's. */
export async function openAuditFiles(options: AuditFilesOptions): Promise<AuditFiles> {
  const { settings, records, anchors, clock, log } = options;
  const { auditUseLogMaxBytes: maxBytes, auditUseLogMaxFiles: maxFiles } = settings;
  const changes = fileOf(options, settings.auditLogFile, null);
  const uses = fileOf(options, settings.auditUseLogFile, { maxBytes, maxFiles });
  const files = [changes, uses].filter((each) => each !== null);
  try {
    if (changes) await claimed(changes.file, 'AUDIT_LOG_FILE');
    if (uses) await claimed(uses.file, 'AUDIT_USE_LOG_FILE');
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
      // A disk that does not answer must not keep a daemon from starting, nor from ending.
      await inTime(clock, MOST_START_MS, Promise.all([changeLog?.begin(), useLog?.write()]), () => undefined);
    },
    keep(ended) {
      useLog?.keep(ended);
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
    writeAtOnce() {
      useLog?.writeAtOnce();
    },
    close: () => inTime(clock, HUNG_MS + 1_000, close(), () => undefined),
  };
}

interface Anchored {
  file: AuditFile;
  anchoring: Anchoring;
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
  const anchoring = new Anchoring(file, anchors, rotation?.maxFiles ?? null, clock, log);
  return { file, anchoring };
}

async function claimed(file: AuditFile, setting: string): Promise<void> {
  try {
    await file.claim();
  } catch (error) {
    throw error instanceof PathInUse ? new SettingsError([`${setting}: ${error.message}`]) : error;
  }
}
