/** Files that root makes for a daemon that runs as another user. */
import { lchownSync, statSync } from 'node:fs';

/**
 * If this process is root's, gives a new file to the owner of another file or folder; otherwise the daemon could not open it. A file system, or a
 * container without the capability, may refuse that: the file is then root's.
 */
export function shareOwner(path: string, like: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(like);
  try {
    lchownSync(path, uid, gid);
  } catch (error) {
    if (!['EPERM', 'EINVAL', 'ENOSYS', 'EROFS'].includes(String((error as NodeJS.ErrnoException).code))) throw error;
  }
}
