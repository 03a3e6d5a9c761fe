import { spawnSync } from 'node:child_process';

/** Says why tests that ask systemd are skipped here; where everything must be there they fail instead. */
export const WITHOUT_SYSTEMD =
  process.env.CI !== 'true' && spawnSync('systemd-analyze', ['--version']).error ? ' (skipped: no systemd here)' : '';

/** A program of systemd that only looks at files. @returns what it said, and how it ended. */
export function ask(program: string, ...args: string[]): { status: number | null; said: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (error) throw error;
  return { status, said: stdout + stderr };
}
