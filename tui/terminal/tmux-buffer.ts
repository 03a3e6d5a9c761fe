import { spawn } from 'node:child_process';

const WITHIN_MS = 2_000;

/**
 * Puts `text` into the paste buffer of the tmux in which this program runs, and asks it to pass the text on to the clipboard of its
 * terminal. By default tmux ignores the sequence for the clipboard (OSC 52) of programs. The text is in no command line.
 *
 * @returns false without tmux, or if it refuses.
 */
export async function intoTmuxBuffer(text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  if (!env.TMUX) return false;
  // tmux before 3.2 does not know -w.
  return (await loaded(text, ['load-buffer', '-w', '-'], env)) || loaded(text, ['load-buffer', '-'], env);
}

function loaded(text: string, args: readonly string[], { PATH, TMUX, TMUX_PANE }: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('tmux', args, {
      env: { PATH, TMUX, TMUX_PANE },
      stdio: ['pipe', 'ignore', 'ignore'],
      timeout: WITHIN_MS,
      killSignal: 'SIGKILL',
    });
    child.once('error', () => {
      resolve(false);
    });
    child.once('close', (code) => {
      resolve(code === 0);
    });
    // It may end before it has read everything.
    child.stdin.on('error', () => undefined).end(text);
  });
}
