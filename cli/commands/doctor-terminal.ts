/** Whether this terminal can show what llmp draws. */
import { WriteStream } from 'node:tty';
import type { Finding } from '../../daemon/ops/doctor.js';
import { isAscii } from '../output.js';
import type { Shell } from '../shell.js';

// Below it the terminal UI has no room for its frame.
const SMALLEST = { columns: 50, rows: 10 };

export const terminalFamily = (shell: Shell) => ({ check: 'terminal', look: () => terminal(shell) });

// eslint-disable-next-line @typescript-eslint/require-await -- as the other checks are
async function* terminal({ stdout, env }: Shell): AsyncGenerator<Finding> {
  const check = 'terminal';
  if (stdout.isTTY !== true) {
    yield { check, state: 'skipped', evidence: 'standard output is no terminal', advice: null };
    return;
  }
  const colors = 2 ** WriteStream.prototype.getColorDepth.call(stdout, env);
  const { columns = 0, rows = 0 } = stdout;
  const evidence = [
    `TERM=${env.TERM ?? ''}`,
    env.NO_COLOR ? 'do not use colors (NO_COLOR)' : `${colors} colours`,
    isAscii(env) ? 'ASCII' : 'UTF-8',
    `${columns}x${rows}`,
  ].join(', ');
  const advice = whatToDo(env, columns, rows);
  yield { check, state: advice === null ? 'ok' : 'warning', evidence, advice };
}

function whatToDo(env: NodeJS.ProcessEnv, columns: number, rows: number): string | null {
  if (!env.TERM || env.TERM === 'dumb') return 'export TERM=xterm-256color';
  if (isAscii(env) && !env.LLMP_ASCII) return 'export LC_ALL=C.UTF-8, or LLMP_ASCII=1 if that is meant';
  // Some pseudo-terminals say 0: nobody knows.
  const isSmall = (columns > 0 && columns < SMALLEST.columns) || (rows > 0 && rows < SMALLEST.rows);
  return isSmall ? `Make it at least ${SMALLEST.columns}x${SMALLEST.rows}` : null;
}
