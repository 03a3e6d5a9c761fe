/** `llmp audit verify`: verifies that audit files are unchanged, complete, and consistent with the database. Works with or without a running daemon. */
import { lstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Environment } from '../../config/settings.js';
import { BEGINNING } from '../store/audit-file/chain.js';
import { firstLineOf, type FoundLine, linesIn, tailOf, Unreadable } from '../store/audit-file/lines.js';
import { RecordCheck } from '../store/audit-file/record-check.js';
import { allRotationsOf, compressionOf, isRotationOf } from '../store/audit-file/rotations.js';
import { check, type Checked, type Fault } from '../store/audit-file/verification.js';
import { type AuditReference, auditReferenceOf } from './audit-reference.js';
import { fromSettings, OperatorError } from './operator-error.js';
import { EXIT } from '../api/vocabulary.js';

export type { Fault };

const NEEDED = ['databaseDriver', 'database', 'auditLogFile', 'auditUseLogFile'] as const;

export interface AuditVerification extends Checked {
  /** Compressed files that were ignored, because the same file exists uncompressed. */
  ignored: string[];
  /** Whether the database had anchors to compare the files with. */
  isAnchored: boolean;
  /** Whether the lines were compared with the records in the database. */
  isCompared: boolean;
}

export interface VerifyOptions {
  /** The files to verify. Empty: AUDIT_LOG_FILE and its rotated files. */
  files: readonly string[];
  /** Verifies AUDIT_USE_LOG_FILE and its rotated files instead. */
  ofUses: boolean;
  /** The first line to verify. Earlier lines are ignored, and may be missing. */
  fromLine: number | null;
}

/** @throws {OperatorError} if the files cannot be verified. */
export async function verifyAudit(
  env: Environment,
  envFile: string | undefined,
  options: VerifyOptions,
): Promise<AuditVerification> {
  const { files: given, ofUses } = options;
  const settings = fromSettings(env, envFile, NEEDED, (all) => all);
  const [changes, uses] = [settings.auditLogFile, settings.auditUseLogFile].map((it) => it && resolve(it));
  const own = ofUses ? uses : changes;
  if (given.length === 0 && !own) {
    const [name, what] = ofUses ? ['AUDIT_USE_LOG_FILE', 'of uses'] : ['AUDIT_LOG_FILE', 'of changes'];
    throw new OperatorError(
      EXIT.usage,
      `${name} is empty: no audit file ${what} is configured. Name the files to verify`,
    );
  }
  const chain = given.length > 0 ? chainOf(given, [changes, uses]) : (own ?? null);
  const reference = chain ? await auditReferenceOf(settings.database, chain, chain === changes) : null;
  try {
    return await verifyFiles(options, chain, reference);
  } catch (error) {
    const { code, path: file } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new OperatorError(EXIT.notFound, `${file} does not exist`, error);
    if (code === 'EACCES') throw new OperatorError(EXIT.permission, `no permission to read ${file}`, error);
    throw error;
  } finally {
    await reference?.close();
  }
}

/** @param chain the path of the last file of the chain; null if no setting names it. */
async function verifyFiles(
  { files: given, ofUses, fromLine }: VerifyOptions,
  chain: string | null,
  reference: AuditReference | null,
): Promise<AuditVerification> {
  const isLast = chain !== null && (given.length === 0 || given.some((file) => resolve(file) === chain));
  const lastRecord = isLast ? (reference?.records?.last ?? null) : null;
  if (chain !== null && lastRecord !== null) await waitForCopiedRecords(chain, lastRecord);
  const { files, ignored } = readableFiles(given.length > 0 ? given : await existing(chain ?? ''));
  const anchors = reference?.anchors ?? [];
  let nextLine = fromLine ?? 1;
  try {
    const numbered = await inOrder(files);
    if (given.length > 0) refuseTwoChains(numbered);
    const isWhole = given.length === 0 && !ofUses;
    const firstLine = fromLine ?? (isWhole ? 1 : (numbered[0]?.line ?? 1));
    nextLine = firstLine;
    const front = anchors.find(({ line }) => line === firstLine - 1)?.head ?? null;
    const records = reference?.records && new RecordCheck(reference.records.after, isWhole && fromLine === null);
    const checked = await check({
      read: () => linesFrom(numbered, fromLine),
      begins: firstLine,
      before: firstLine === 1 ? BEGINNING.digest : front,
      anchors,
      isToEnd: isLast,
      async onLine(number, line) {
        nextLine = number + 1;
        await records?.take(number, line);
      },
    });
    const isAnchored = checked.anchored > 0 || (front !== null && checked.lines > 0);
    const newest = anchors.at(-1);
    // The database has anchors of this file, but none for these lines: they may belong to another chain.
    const isUnknown = newest !== undefined && !isAnchored && newest.line < nextLine;
    const isFrontKnown = given.length === 0 && ofUses && fromLine === null;
    const fault =
      (isFrontKnown ? frontFault(firstLine, reference) : null) ??
      checked.fault ??
      (isUnknown ? faultAt('unanchored', firstLine) : null) ??
      (await records?.fault(lastRecord, nextLine)) ??
      forged(reference, nextLine);
    // After a fault it only matters whether there were anchors at all.
    const isComparable = fault ? anchors.length > 0 : isAnchored;
    return { ...checked, ignored, fault, isAnchored: isComparable, isCompared: records != null };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const fault = { ...faultAt('unreadable', nextLine, error.message), file: error.file };
    const nothing = { torn: [], first: null, last: null, lines: 0, anchored: 0, isAnchored: false, isCompared: false };
    return { ...nothing, ignored, fault };
  }
}

/** A fault that no line shows. */
const faultAt = (kind: Fault['kind'], line: number, detail?: string): Fault => ({
  kind,
  line,
  file: null,
  at: null,
  ...(detail !== undefined && { detail }),
});

/** Reports a row in the database that no daemon has written. */
function forged(reference: AuditReference | null, nextLine: number): Fault | null {
  const place = reference?.records?.forged ?? null;
  return place === null ? null : faultAt('missing_record', nextLine, String(place));
}

/** The daemon deletes the oldest use files, and the database records which: the remaining files must begin right after them. */
function frontFault(firstLine: number, reference: AuditReference | null): Fault | null {
  const removed = reference?.ends[0]?.line;
  return removed === undefined || firstLine <= removed + 1 ? null : faultAt('removed', removed + 1);
}

function chainOf(given: readonly string[], known: readonly (string | null | undefined)[]): string | null {
  const isOf = (file: string, path: string) => file.startsWith(path) || isRotationOf(file, path);
  return (
    known.filter((path) => path != null).findLast((path) => given.every((file) => isOf(resolve(file), path))) ?? null
  );
}

const MAX_POLLS = 20;
const POLL_EVERY_MS = 100;

/** Waits up to 2 s until a running daemon has copied the committed records to the file. */
async function waitForCopiedRecords(path: string, last: number): Promise<void> {
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const tail = await tailOf(path).catch(() => null);
    if (!tail || (tail.seq ?? 0) >= last) return;
    await pause(POLL_EVERY_MS);
  }
}

interface Numbered {
  file: string;
  /** The number of its first line; null if the file has no line. */
  line: number | null;
}

async function existing(path: string): Promise<string[]> {
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const files = [...(await allRotationsOf(path)), ...(isThere ? [path] : [])];
  if (files.length > 0) return files;
  throw new OperatorError(EXIT.notFound, `audit file ${path} does not exist`);
}

/** Selects the files to read. Files compressed with gzip are read directly. While a file is being compressed, both exist, and the plain one is used. */
function readableFiles(found: readonly string[]): { files: string[]; ignored: string[] } {
  const files: string[] = [];
  const ignored: string[] = [];
  for (const file of found) {
    const compression = compressionOf(file);
    const isTwice = compression !== null && found.includes(file.slice(0, -compression.length - 1));
    if (isTwice) ignored.push(file);
    else if (compression === null || compression === 'gz') files.push(file);
    else throw new OperatorError(EXIT.usage, `${file} is not compressed with gzip. Decompress it first`);
  }
  return { files, ignored };
}

/** Sorts the files by the line numbers in them, independent of their names. */
async function inOrder(files: readonly string[]): Promise<Numbered[]> {
  const numbered: Numbered[] = [];
  for (const file of files) numbered.push({ file, line: await firstLineOf(file) });
  return numbered.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity));
}

/** Refuses files of two chains, for example from `*.log`: the lines of one would be reported as inserted into the other. */
function refuseTwoChains(files: readonly Numbered[]): void {
  const [first, second] = files.filter(({ line }) => line === 1).map(({ file }) => file);
  if (first === undefined || second === undefined) return;
  throw new OperatorError(EXIT.usage, `${first} and ${second} belong to different chains. Verify them separately`);
}

/** @param fromLine earlier lines are skipped. */
async function* linesFrom(files: readonly Numbered[], fromLine: number | null): AsyncGenerator<FoundLine> {
  let hasStarted = fromLine === null;
  for (const { file } of files) {
    for await (const line of linesIn(file)) {
      hasStarted ||= line.number !== null && line.number >= (fromLine ?? 1);
      if (hasStarted) yield line;
    }
  }
}
