/** The pager for tables that are longer than the screen. */
import { spawn } from 'node:child_process';

/** The program that shows long tables: a command line for a shell, or `less` as llmp starts it. */
export type Pager = { command: string } | 'less';

/** As git does: the pager ends at once if the text fits, passes colors on, and leaves the text on the screen. */
const LESS = 'FRX';

/** The pager that the environment requests; null: none. An empty variable, and `cat`, request none. */
export function pagerIn({ LLMP_PAGER, PAGER, TERM }: NodeJS.ProcessEnv): Pager | null {
  if (TERM === 'dumb') return null;
  const command = (LLMP_PAGER ?? PAGER)?.trim();
  if (command === undefined) return 'less';
  return command === '' || command === 'cat' ? null : { command };
}

/**
 * Shows a text with the pager on the terminal, until the user quits it.
 *
 * @returns whether it was shown: false if the pager could not be started.
 */
export function paged(pager: Pager, text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const childEnv: NodeJS.ProcessEnv = { LESS, ...env };
  const [file, args] = pager === 'less' ? ['less', [`-${LESS}`]] : ['sh', ['-c', pager.command]];
  // ^C belongs to the pager. If it ended this process, the shell and the pager would compete for the keys.
  const ignored = () => undefined;
  process.on('SIGINT', ignored);
  return new Promise<boolean>((resolve) => {
    const child = spawn(file, args, { env: childEnv, stdio: ['pipe', 'inherit', 'inherit'] });
    child.on('error', () => {
      resolve(false);
    });
    child.on('close', (code) => {
      // The codes of a shell for a program that it did not find, or could not execute.
      resolve(code !== 126 && code !== 127);
    });
    // A user may quit the pager before it has read everything; the write error is then expected.
    child.stdin.on('error', ignored).end(text);
  }).finally(() => process.off('SIGINT', ignored));
}
