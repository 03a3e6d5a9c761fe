/** The check of `llmp doctor` on the terminal: whether it can show the terminal UI. */
import { WriteStream } from 'node:tty';
import type { Finding } from '../../daemon/ops/doctor.js';
import { isAscii } from '../output.js';
import type { Shell } from '../shell.js';

// The smallest size for the terminal UI.
const SMALLEST = { columns: 50, rows: 10 };

export const terminalChecks = (shell: Shell) => ({ check: 'terminal', run: () => terminal(shell) });

// eslint-disable-next-line @typescript-eslint/require-await -- the signature of a check
async function* terminal({ stdout, env }: Shell): AsyncGenerator<Finding> {
  const check = 'terminal';
  if (stdout.isTTY !== true) {
    yield { check, state: 'skipped', evidence: 'standard output is not a terminal', advice: null };
    return;
  }
  const colors = 2 ** WriteStream.prototype.getColorDepth.call(stdout, env);
  const { columns = 0, rows = 0 } = stdout;
  const evidence = [
    `TERM=${env.TERM ?? ''}`,
    env.NO_COLOR ? 'no colors (NO_COLOR)' : `${colors} colors`,
    isAscii(env) ? 'ASCII' : 'UTF-8',
    `${columns}x${rows}`,
  ].join(', ');
  const advice = whatToDo(env, columns, rows);
  yield { check, state: advice === null ? 'ok' : 'warning', evidence, advice };
}

function whatToDo(env: NodeJS.ProcessEnv, columns: number, rows: number): string | null {
  if (!env.TERM || env.TERM === 'dumb') return 'export TERM=xterm-256color';
  if (isAscii(env) && !env.LLMP_ASCII) return 'export LC_ALL=C.UTF-8, or LLMP_ASCII=1 if ASCII is intended';
  // Some pseudo-terminals report 0, which means unknown.
  const isSmall = (columns > 0 && columns < SMALLEST.columns) || (rows > 0 && rows < SMALLEST.rows);
  return isSmall ? `Enlarge it to at least ${SMALLEST.columns}x${SMALLEST.rows}` : null;
}
