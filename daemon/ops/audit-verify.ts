/** `llmp audit verify`: whether audit files are as they were written. Beside a running daemon, or without one. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseAddress } from '../../config/database-url.js';
import { type Environment, loadPart, SettingsError } from '../../config/settings.js';
import { readEnvFile } from '../../config/sources.js';
import { realClock } from '../clock.js';
import type { Anchor } from '../store/audit-file/chain.js';
import { rotationsOf } from '../store/audit-file/rotations.js';
import { firstLineOf } from '../store/audit-file/tail.js';
import { check, type Checked, type FoundLine, linesIn } from '../store/audit-file/verification.js';
import { openDatabase } from '../store/open.js';
import { anchorsOf } from '../store/sql/anchors.js';

/** What stands in the way, in words for the operator, and the exit code that says so. */
export class VerificationError extends Error {
  override name = 'VerificationError';
  constructor(
    readonly exitCode: number,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

const EXIT = { usage: 2, notFound: 4, unavailable: 69, permission: 77, configuration: 78 };

export interface Verdict extends Checked {
  /** In the order of their lines. */
  files: string[];
  lines: number;
  /** Whether there was something in the database to compare with. */
  isAnchored: boolean;
}

/**
 * @param given files to verify; none: AUDIT_LOG_FILE and those it was before.
 * @throws {VerificationError} when nothing can be said.
 */
export async function verifyAudit(env: Environment, envFile: string | undefined, given: readonly string[]) {
  const settings = settingsOf(env, envFile);
  const known = [settings.auditLogFile, settings.auditUseLogFile]
    .filter((each) => each !== null)
    .map((it) => resolve(it));
  const [own] = settings.auditLogFile === null ? [] : known;
  if (given.length === 0 && own === undefined) {
    throw new VerificationError(
      EXIT.usage,
      'AUDIT_LOG_FILE is empty: there is no audit file. Name the files to verify',
    );
  }
  const numbered = given.length > 0 ? await inOrder(given) : await existing(own ?? '');
  if (given.length > 0) refuseTwoChains(numbered);
  const files = numbered.map(({ file }) => file);
  const lines: FoundLine[] = [];
  for (const file of files) lines.push(...(await linesOfFile(file)));
  const chain = known.filter((path) => files.every((file) => resolve(file).startsWith(path))).at(-1);
  const anchors = chain === undefined ? [] : await anchorsIn(settings.database, chain);
  // Of files that were named the end may be in another that was not.
  const isLast = chain !== undefined && files.some((file) => resolve(file) === chain);
  const last = lines.length === 0 ? 0 : (numbered[0]?.line ?? 1);
  const within = isLast ? anchors : anchors.filter(({ line }) => line < last + lines.length);
  const checked = check(lines, within, given.length === 0);
  return { ...checked, files, lines: lines.length, isAnchored: within.length > 0 } satisfies Verdict;
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

async function existing(path: string): Promise<Numbered[]> {
  const files = [...(await rotationsOf(path)), ...(existsSync(path) ? [path] : [])];
  if (files.length > 0) return inOrder(files);
  throw new VerificationError(EXIT.notFound, `there is no audit file ${path}`);
}

/** By the numbers in them, whatever their names say. */
async function inOrder(files: readonly string[]): Promise<Numbered[]> {
  const numbered = await Promise.all(
    files.map(async (file) => ({ file, line: await explained(file, firstLineOf(file)) })),
  );
  return numbered.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity));
}

/** As `*.log` names them: the lines of one would be taken for lines that somebody put into the other. */
function refuseTwoChains(files: readonly Numbered[]): void {
  const [first, second] = files.filter(({ line }) => line === 1).map(({ file }) => file);
  if (first === undefined || second === undefined) return;
  throw new VerificationError(EXIT.usage, `${first} and ${second} begin a chain each: verify one after the other`);
}

async function linesOfFile(file: string): Promise<FoundLine[]> {
  const lines: FoundLine[] = [];
  const read = async () => {
    for await (const line of linesIn(file)) lines.push(line);
  };
  await explained(file, read());
  return lines;
}

async function explained<T>(file: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new VerificationError(EXIT.notFound, `there is no file ${file}`, error);
    if (code === 'EACCES') throw new VerificationError(EXIT.permission, `no permission to read ${file}`, error);
    throw error;
  }
}

/** None where there is no file of a database to ask: that is for the operator to judge, and the answer says it. */
async function anchorsIn(address: DatabaseAddress, chain: string): Promise<Anchor[]> {
  if (address.driver === 'sqlite' && !existsSync(address.path)) return [];
  const database = opened(address);
  try {
    return await anchorsOf(database, chain);
  } catch (error) {
    if (address.driver === 'sqlite') return [];
    const text = error instanceof Error ? error.message : String(error);
    throw new VerificationError(EXIT.unavailable, `the database does not say how far the file reached: ${text}`, error);
  } finally {
    await database.close();
  }
}

function opened(address: DatabaseAddress) {
  try {
    return openDatabase({ database: address }, realClock);
  } catch (error) {
    if (error instanceof SettingsError) throw new VerificationError(EXIT.configuration, error.message, error);
    throw error;
  }
}
