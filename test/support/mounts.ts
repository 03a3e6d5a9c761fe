/** Whether a test may mount a small disk. Elsewhere than in CI its suite is then skipped, and says so. */
import { spawnSync } from 'node:child_process';
import { temporaryFolder } from './daemon.js';

const canMount = () => {
  const dir = temporaryFolder();
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir]).status === 0;
  if (isMounted) spawnSync('umount', [dir]);
  return isMounted;
};
export const WITHOUT_MOUNT =
  process.env.CI !== 'true' && !canMount() ? ' (skipped: mounting is not permitted here)' : '';
