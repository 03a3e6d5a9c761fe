/** Finds out what config/version.ts reads. */
import { spawnSync } from 'node:child_process';
import type { BuildInfo } from '../config/version.js';

/**
 * @param root the folder of the sources. @param epoch SOURCE_DATE_EPOCH: the time of the build in seconds since 1970, see
 *   https://reproducible-builds.org/specs/source-date-epoch/. Default: the time of the commit.
 * @throws if `epoch` is not a number.
 */
export function sourceOf(root: string, epoch: string | undefined): Omit<BuildInfo, 'sqlite' | 'prices'> {
  if (epoch !== undefined && !/^\d{1,11}$/.test(epoch))
    throw new Error(`SOURCE_DATE_EPOCH must be a number of seconds, not ${JSON.stringify(epoch)}`);
  const [commit, committedAt] = git(root, 'log', '-1', '--format=%H %ct')?.split(' ') ?? [];
  const isDirty = commit !== undefined && git(root, 'status', '--porcelain', '--untracked-files=no') !== '';
  const seconds = epoch ?? committedAt;
  return {
    commit: commit === undefined ? null : `${commit}${isDirty ? '-dirty' : ''}`,
    builtAt: seconds === undefined ? null : new Date(Number(seconds) * 1000).toISOString().replace('.000Z', 'Z'),
  };
}

/** @returns the output; null without git, and outside of a repository of its own. */
function git(root: string, ...args: readonly string[]): string | null {
  // Sources in a folder of another repository are not of its commit.
  const options = { encoding: 'utf8', timeout: 10_000 } as const;
  const top = spawnSync('git', ['-C', root, 'rev-parse', '--show-prefix'], options);
  if (top.status !== 0 || top.stdout.trim() !== '') return null;
  const { status, stdout } = spawnSync('git', ['-C', root, ...args], options);
  return status === 0 ? stdout.trim() : null;
}
