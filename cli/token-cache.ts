/** Tokens that `llmp token print` issued, in files that only their owner can read. One process at a time issues a token. */
import { createHash, randomUUID } from 'node:crypto';
import {
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { EXIT, Failure, usage } from '../console/failure.js';
import { replaceFile } from '../console/own-file.js';

export interface CachedToken {
  id: string;
  token: string;
  /** By the clock of this machine, in ms since the epoch; also `expiresAtMs`. */
  issuedAtMs: number;
  expiresAtMs: number;
  /** As the daemon said it, for people. */
  expires_at: string;
}

const OWNER_ONLY = 0o600;
const MAX_BYTES = 16 * 1024;
/** A process that is removing a stale lock needs a few system calls. */
const MAX_BREAKING_MS = 10_000;

/**
 * The folder of the cache: `llmp` in `XDG_RUNTIME_DIR`, which others cannot read and which ends with the session, else a private one for
 * temporary files. It is created if it does not exist.
 *
 * @throws {Failure} if it belongs to another user, or others can write to it.
 */
export function tokenFolder({ XDG_RUNTIME_DIR: runtime }: NodeJS.ProcessEnv): string {
  const isRuntime = runtime !== undefined && runtime !== '' && statsOf(runtime)?.isDirectory() === true;
  const folder = isRuntime ? join(runtime, 'llmp') : join(tmpdir(), `llmp-${userInfo().uid}`);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') throw usage(`cannot create ${folder}`, { why: code ?? 'failed', cause: error });
  }
  refuseOthers(dirname(folder), statSync(dirname(folder)));
  // Not through a symbolic link, which may be another user's.
  refuseOthers(folder, lstatSync(folder));
  return folder;
}

function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function refuseOthers(path: string, stats: Stats): void {
  const { uid, mode } = stats;
  const advice = 'Set XDG_RUNTIME_DIR to a folder of your own with mode 0700';
  if (!stats.isDirectory()) throw usage(`${path} is not a folder`, { advice });
  if (uid !== userInfo().uid && uid !== 0) {
    throw usage(`${path} belongs to another user (uid ${uid})`, { why: 'they could read the tokens', advice });
  }
  // In a folder with the sticky bit, such as /tmp, users cannot replace files of other users.
  if (mode & 0o022 && !(mode & 0o1000)) {
    throw usage(`${path} is writable by other users`, { why: 'they could replace the tokens', advice });
  }
}

/** One token of the cache. */
export class TokenFile {
  readonly #path: string;
  readonly #now: () => number;

  /** @param terms what distinguishes its tokens from others, such as the project and the lifetime. */
  constructor(folder: string, terms: readonly (string | undefined)[], now: () => number) {
    const name = createHash('sha256').update(JSON.stringify(terms)).digest('hex').slice(0, 32);
    this.#path = join(folder, `token-${name}.json`);
    this.#now = now;
  }

  /** @returns null if there is no token that can be used, or the file is not this user's alone. */
  async read(): Promise<CachedToken | null> {
    try {
      const file = await open(this.#path, constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        const { uid, mode, size } = await file.stat();
        const isOwn = uid === userInfo().uid && (mode & 0o077) === 0 && size <= MAX_BYTES;
        const cached = isOwn ? (JSON.parse(await file.readFile('utf8')) as Partial<CachedToken>) : {};
        return isToken(cached) && this.#now() < cached.expiresAtMs ? cached : null;
      } finally {
        await file.close();
      }
    } catch {
      return null;
    }
  }

  /** @throws the error of the file system. */
  write(token: CachedToken): void {
    replaceFile(this.#path, JSON.stringify(token), OWNER_ONLY, null);
  }

  /**
   * @param forMs after this time the lock is stale, even if this process still runs.
   * @returns a function that unlocks; null if another process has the lock.
   */
  lock(forMs: number): (() => void) | null {
    const path = `${this.#path}.lock`;
    const content = JSON.stringify({ pid: process.pid, untilMs: this.#now() + forMs, nonce: randomUUID() });
    if (!create(path, content)) {
      this.#breakStale(path);
      if (!create(path, content)) return null;
    }
    return () => {
      if (contentOf(path) === content) rmSync(path, { force: true });
    };
  }

  /** Removes a stale lock. One process at a time does this: another one would remove the lock that follows. */
  #breakStale(path: string): void {
    if (!this.#isStale(path)) return;
    const breaking = `${path}.breaking`;
    const untilMs = this.#now() + MAX_BREAKING_MS;
    if (!create(breaking, JSON.stringify({ pid: process.pid, untilMs }))) {
      if (this.#isStale(breaking)) rmSync(breaking, { force: true });
      return;
    }
    if (this.#isStale(path)) rmSync(path, { force: true });
    rmSync(breaking, { force: true });
  }

  #isStale(path: string): boolean {
    const content = contentOf(path);
    if (content === null) return false; // It was removed in the meantime.
    try {
      const { pid, untilMs } = JSON.parse(content) as { pid: number; untilMs: number };
      return !(this.#now() < untilMs) || !isRunning(pid);
    } catch {
      return true;
    }
  }
}

/** Creates a file with its content in one step. @returns false if it exists. @throws {Failure} for example if the disk is full. */
function create(path: string, content: string): boolean {
  const temporary = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporary, content, { flag: 'wx', mode: OWNER_ONLY });
    linkSync(temporary, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new Failure(EXIT.refused, `cannot write in ${dirname(path)}`, {
      code: 'cannot_write',
      why: code ?? 'failed',
      cause: error,
    });
  } finally {
    rmSync(temporary, { force: true });
  }
}

function contentOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function isToken(cached: Partial<CachedToken>): cached is CachedToken {
  const { id, token, issuedAtMs, expiresAtMs, expires_at: expiry } = cached;
  const areTexts = [id, token, expiry].every((text) => typeof text === 'string');
  return areTexts && Number.isFinite(issuedAtMs) && Number.isFinite(expiresAtMs);
}
