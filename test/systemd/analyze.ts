import { spawnSync } from 'node:child_process';

/** The reason why tests that need systemd are skipped; empty if it is installed, and in CI, where they fail instead. */
export const WITHOUT_SYSTEMD =
  process.env.CI !== 'true' && spawnSync('systemd-analyze', ['--version']).error
    ? ' (skipped: systemd is not installed)'
    : '';

/** Runs a program of systemd that only reads files. @returns its output and exit status. */
export function ask(program: string, ...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (error) throw error;
  return { status, output: stdout + stderr };
}
