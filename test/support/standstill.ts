/** A process as if its machine stood still. */
import { readdirSync, readFileSync } from 'node:fs';

const WITHIN_MS = 2_000;

/**
 * Connections stay, nothing answers. After a signal alone some of its threads might still do so for a moment.
 *
 * @returns whether there was such a process.
 */
export function standStill(pid: number): boolean {
  if (!signalled(pid)) return false;
  const giveUpMs = performance.now() + WITHIN_MS;
  while (isAnyRunning(pid)) {
    if (performance.now() > giveUpMs) throw new Error(`process ${pid} does not stand still`);
  }
  return true;
}

function signalled(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGSTOP');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

function isAnyRunning(pid: number): boolean {
  const threads = entriesOf(`/proc/${pid}/task`);
  return threads.some((thread) => {
    // What stands behind the name: that may have spaces and brackets in it.
    const state = contentOf(`/proc/${pid}/task/${thread}/stat`).split(') ').at(-1)?.[0];
    return state !== undefined && !'TtZX'.includes(state);
  });
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // It has ended.
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
