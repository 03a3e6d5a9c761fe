/** Freezes a process as if its machine were frozen. */
import { readdirSync, readFileSync } from 'node:fs';

const WITHIN_MS = 2_000;

/**
 * Connections stay, nothing responds. After the signal alone, some of its threads might continue for a moment.
 * @returns whether the process existed.
 */
export function freezeProcess(pid: number): boolean {
  if (!signalled(pid)) return false;
  const giveUpMs = performance.now() + WITHIN_MS;
  while (isAnyRunning(pid)) {
    if (performance.now() > giveUpMs) throw new Error(`process ${pid} does not stop`);
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
    // The fields after the name, which may contain spaces and brackets.
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
