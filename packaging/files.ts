/** Files of a release: what is written, in which order and with which times and modes depends on nothing but the sources. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, type Dirent, lutimesSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** Far more than any output of these programs. */
const MAX_OUTPUT = 2 ** 30;

/** Runs a program. @returns its standard output. @throws with its standard error if it fails. */
export function run(program: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  return execFileSync(program, args, { ...options, maxBuffer: MAX_OUTPUT, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Writes a file of a release, and the folders that it is in. */
export function write(path: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

/** Every file, folder and link below a folder, in the order of their names. Not with `recursive`, which follows links since Node.js 22. */
export function entriesBelow(folder: string): { entry: Dirent; path: string }[] {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => ({ entry, path: join(folder, entry.name) }))
    .flatMap((found) => [found, ...(found.entry.isDirectory() ? entriesBelow(found.path) : [])])
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** The mode of every file becomes 0644 and that of every folder 0755, whatever the umask is, except for programs. */
export function setModes(folder: string, programs: readonly string[]): void {
  chmodSync(folder, 0o755);
  for (const { entry, path } of entriesBelow(folder)) {
    if (entry.isSymbolicLink()) continue;
    chmodSync(path, entry.isDirectory() || programs.includes(path) ? 0o755 : 0o644);
  }
}

/** @param time in seconds since 1970. */
export function setTimes(folder: string, time: number): void {
  for (const { path } of entriesBelow(folder)) lutimesSync(path, time, time);
  lutimesSync(folder, time, time);
}

/** gzip without the name and the time of the file. */
export const gzip = (content: string | Buffer) => gzipSync(content, { level: 9 });

export const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

interface TarOptions {
  /** Seconds since 1970. */
  time: number;
  /** The names in `folder` to archive; everything by default. */
  names?: readonly string[];
  /** The number of the user and group that own the files. */
  owner?: number;
}

/** A tar archive of a folder, sorted by name. */
export function tar(folder: string, { time, names = ['.'], owner = 0 }: TarOptions): Buffer {
  const ownedBy = [`--owner=${owner}`, `--group=${owner}`, '--numeric-owner'];
  const options = ['--format=gnu', '--sort=name', `--mtime=@${time}`, ...ownedBy];
  return run('tar', ['-C', folder, ...options, '-cf', '-', ...names], { env: { ...process.env, LC_ALL: 'C' } });
}

/** The content of a text file in a folder. */
export const textIn = (folder: string, ...path: readonly string[]) => readFileSync(join(folder, ...path), 'utf8');
