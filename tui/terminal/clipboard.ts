import { spawn } from 'node:child_process';

// Limit of xterm: 100,000 characters for the whole sequence. This is that limit in bytes before base64. Most others accept more.
const MAX_BYTES = 74_994;
// GNU screen passes through up to 768 bytes at once, including the wrapper.
const SCREEN_PIECE = 512;

/**
 * The sequence that copies `text` to the clipboard of the terminal (OSC 52), which also works over ssh. The terminal does not
 * confirm it. tmux ignores it unless `set-clipboard` is `on`; see `intoTmuxBuffer`.
 *
 * @returns undefined if `text` is longer than terminals accept.
 */
export function clipboardSequence(text: string, env: NodeJS.ProcessEnv): string | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_BYTES) return undefined;
  const sequence = `\x1b]52;c;${bytes.toString('base64')}\x07`;
  // tmux accepts the plain sequence. screen needs it wrapped for pass-through, in pieces.
  const isScreen = env.TMUX === undefined && (env.STY !== undefined || /^screen/.test(env.TERM ?? ''));
  if (!isScreen) return sequence;
  const pieces = sequence.match(new RegExp(`[^]{1,${SCREEN_PIECE}}`, 'g')) ?? [];
  return pieces.map((piece) => `\x1bP${piece}\x1b\\`).join('');
}

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
