/**
 * `llmp audit verify`: whether audit files are as they were written, and say the same as the database. Beside a running daemon, or
 * without one.
 */
import { lstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { BEGINNING } from '../store/audit-file/chain.js';
import { firstLineOf, type FoundLine, linesIn, Unreadable } from '../store/audit-file/reading.js';
import { RecordCheck } from '../store/audit-file/record-check.js';
import { allRotationsOf, compressionOf, isRotationOf } from '../store/audit-file/rotations.js';
import { NotARegularFile, tailOf } from '../store/audit-file/tail.js';
import { check, type Checked, type Fault } from '../store/audit-file/verification.js';
import { type AuditKnowledge, knowledgeOf } from './audit-knowledge.js';
import { VerificationError } from './verification-error.js';
import { EXIT } from '../api/vocabulary.js';

export { VerificationError };
export type { Fault };

export interface Verdict extends Checked {
  /** In the order of their lines. */
  files: string[];
  /** Files that were left aside, since a plain one of the same name is there. */
  ignored: string[];
  /** Whether there was something in the database to compare with. */
  isAnchored: boolean;
  /** Whether the lines were compared with the records in the database. */
  isCompared: boolean;
}

export interface VerifyOptions {
  /** None: AUDIT_LOG_FILE and those it was before. */
  files: readonly string[];
  /** AUDIT_USE_LOG_FILE and those it was before. */
  ofUses: boolean;
  /** Lines before that one are left aside, whether they are there or not. */
  fromLine: number | null;
}

/** @throws {VerificationError} when nothing can be said. */
export async function verifyAudit(
  env: Environment,
  envFile: string | undefined,
  options: VerifyOptions,
): Promise<Verdict> {
  const { files: given, ofUses } = options;
  const settings = settingsOf(env, envFile);
  const [changes, uses] = [settings.auditLogFile, settings.auditUseLogFile].map((it) => it && resolve(it));
  const own = ofUses ? uses : changes;
  if (given.length === 0 && !own) {
    const [name, what] = ofUses ? ['AUDIT_USE_LOG_FILE', 'of uses'] : ['AUDIT_LOG_FILE', 'of changes'];
    throw new VerificationError(
      EXIT.usage,
      `${name} is empty: there is no audit file ${what}. Name the files to verify`,
    );
  }
  const chain = given.length > 0 ? chainOf(given, [changes, uses]) : (own ?? null);
  const knowledge = chain ? await knowledgeOf(settings.database, chain, chain === changes) : null;
  try {
    return await verified(options, chain, knowledge);
  } finally {
    await knowledge?.close();
  }
}

/** @param chain the path of the file that the chain ends with; null where no setting names it. */
async function verified(
  { files: given, ofUses, fromLine }: VerifyOptions,
  chain: string | null,
  knowledge: AuditKnowledge | null,
): Promise<Verdict> {
  const isLast = chain !== null && (given.length === 0 || given.some((file) => resolve(file) === chain));
  if (isLast && knowledge?.records) await caughtUp(chain, knowledge.records.last);
  const { files, ignored } = readable(given.length > 0 ? given : await existing(chain ?? ''));
  const nothing = {
    ...{ files, ignored, torn: [], first: null, last: null },
    ...{ lines: 0, anchored: 0, isAnchored: false, isCompared: false },
  };
  let numbered: Numbered[];
  try {
    numbered = await inOrder(files);
  } catch (error) {
    if (error instanceof UnreadableFile) return { ...nothing, fault: error.fault(fromLine ?? 1) };
    throw error;
  }
  if (given.length > 0) refuseTwoChains(numbered);
  const isWhole = given.length === 0 && !ofUses;
  const begins = fromLine ?? (isWhole ? 1 : (numbered[0]?.line ?? 1));
  const task = { numbered, begins, isWhole: isWhole && fromLine === null, isLast, fromLine, knowledge };
  const verdict = await verdictOn(task);
  const front = given.length === 0 && ofUses && fromLine === null ? frontFault(begins, knowledge) : null;
  return { ...nothing, ...verdict, files: numbered.map(({ file }) => file), fault: front ?? verdict.fault };
}

interface Task {
  numbered: readonly Numbered[];
  begins: number;
  isWhole: boolean;
  isLast: boolean;
  fromLine: number | null;
  knowledge: AuditKnowledge | null;
}

async function verdictOn({ numbered, begins, isWhole, isLast, fromLine, knowledge }: Task) {
  const anchors = knowledge?.anchors ?? [];
  const front = anchors.find(({ line }) => line === begins - 1)?.head ?? null;
  const before = begins === 1 ? BEGINNING.digest : front;
  const records = knowledge?.records && new RecordCheck(knowledge.records.after, isWhole);
  const read = () => linesFrom(numbered, fromLine);
  let behind = begins;
  const onLine = async (number: number, line: FoundLine) => {
    behind = number + 1;
    await records?.take(number, line);
  };
  try {
    const checked = await check({ read, begins, before, anchors, isToEnd: isLast, onLine });
    const isAnchored = checked.anchored > 0 || (front !== null && checked.lines > 0);
    const newest = anchors.at(-1);
    // The database knows the chain, and nothing of these lines: they may be another one.
    const isUnknown = newest !== undefined && !isAnchored && newest.line < behind;
    const fault =
      checked.fault ??
      (isUnknown ? ({ kind: 'unanchored', line: begins, file: null, at: null } satisfies Fault) : null) ??
      (await records?.fault(isLast ? (knowledge?.records?.last ?? null) : null, behind)) ??
      forged(knowledge, behind);
    // Of a fault it is enough to know whether there was something to find it by.
    const isComparable = fault ? anchors.length > 0 : isAnchored;
    return { ...checked, fault, isAnchored: isComparable, isCompared: records != null };
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
    return { fault: error.fault(behind) };
  }
}

/** A row in the database that no daemon has written. */
function forged(knowledge: AuditKnowledge | null, behind: number): Fault | null {
  const place = knowledge?.records?.forged ?? null;
  return place === null ? null : { kind: 'missing_record', line: behind, file: null, at: null, detail: String(place) };
}

/** Of the files of uses the oldest ones go, and the database knows which: those that are kept begin behind them. */
function frontFault(begins: number, knowledge: AuditKnowledge | null): Fault | null {
  const removed = knowledge?.ends[0]?.line;
  if (removed === undefined || begins <= removed + 1) return null;
  return { kind: 'removed', line: removed + 1, file: null, at: null };
}

function chainOf(given: readonly string[], known: readonly (string | null | undefined)[]): string | null {
  const isOf = (file: string, path: string) => file.startsWith(path) || isRotationOf(file, path);
  return (
    known.filter((path) => path != null).findLast((path) => given.every((file) => isOf(resolve(file), path))) ?? null
  );
}

const MOST_LOOKS = 20;
const LOOK_EVERY_MS = 100;

/** A daemon that runs copies what was committed within moments: it is given them. */
async function caughtUp(path: string, last: number): Promise<void> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const tail = await tailOf(path).catch(() => null);
    if (!tail || (tail.seq ?? 0) >= last) return;
    await pause(LOOK_EVERY_MS);
  }
}

function settingsOf(env: Environment, envFile: string | undefined) {
  try {
    const file = envFile === undefined ? undefined : readEnvFile(envFile);
    return loadPart({ env, file }, ['databaseDriver', 'database', 'auditLogFile', 'auditUseLogFile']).settings;
  } catch (error) {
    if (error instanceof SettingsError) throw new VerificationError(EXIT.configuration, error.message, error);
    throw error;
  }
}

interface Numbered {
  file: string;
  /** The number of its first line; null where it has none. */
  line: number | null;
}

async function existing(path: string): Promise<string[]> {
  const files = [...(await allRotationsOf(path)), ...(isThere(path) ? [path] : [])];
  if (files.length > 0) return files;
  throw new VerificationError(EXIT.notFound, `there is no audit file ${path}`);
}

/** What is compressed with gzip is read as it is; while it is being compressed both are there, and the plain one counts. */
function readable(found: readonly string[]): { files: string[]; ignored: string[] } {
  const files: string[] = [];
  const ignored: string[] = [];
  for (const file of found) {
    const compression = compressionOf(file);
    const isTwice = compression !== null && found.includes(file.slice(0, -compression.length - 1));
    if (isTwice) ignored.push(file);
    else if (compression === null || compression === 'gz') files.push(file);
    else
      throw new VerificationError(
        EXIT.usage,
        `${file} is compressed with another program than gzip: decompress it first`,
      );
  }
  return { files, ignored };
}

/** By the numbers in them, whatever their names say. */
async function inOrder(files: readonly string[]): Promise<Numbered[]> {
  const numbered: Numbered[] = [];
  for (const file of files) numbered.push({ file, line: await explained(file, firstLineOf(file)) });
  return numbered.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity));
}

/** As `*.log` names them: the lines of one would be taken for lines that somebody put into the other. */
function refuseTwoChains(files: readonly Numbered[]): void {
  const [first, second] = files.filter(({ line }) => line === 1).map(({ file }) => file);
  if (first === undefined || second === undefined) return;
  throw new VerificationError(EXIT.usage, `${first} and ${second} begin a chain each: verify one after the other`);
}

/** @param fromLine lines before that one are left out. */
async function* linesFrom(files: readonly Numbered[], fromLine: number | null): AsyncGenerator<FoundLine> {
  let isBegun = fromLine === null;
  for (const { file } of files) {
    const lines = linesIn(file);
    try {
      for (;;) {
        const next = await explained(file, lines.next());
        if (next.done) break;
        isBegun ||= next.value.number !== null && next.value.number >= (fromLine ?? 1);
        if (isBegun) yield next.value;
      }
    } finally {
      await lines.return(undefined);
    }
  }
}

/** A file under the name of an audit file that is none, or is damaged. That is for the operator to hear as a finding. */
class UnreadableFile extends Error {
  readonly file: string;

  constructor(file: string, cause: Error) {
    super(cause.message, { cause });
    this.file = file;
  }

  fault(line: number): Fault {
    return { kind: 'unreadable', line, file: this.file, at: null, detail: this.message };
  }
}

async function explained<T>(file: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new VerificationError(EXIT.notFound, `there is no file ${file}`, error);
    if (code === 'EACCES') throw new VerificationError(EXIT.permission, `no permission to read ${file}`, error);
    if (error instanceof Unreadable || error instanceof NotARegularFile) throw new UnreadableFile(file, error);
    if (code === 'ENXIO' || code === 'ELOOP') throw new UnreadableFile(file, error as Error);
    throw error;
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
