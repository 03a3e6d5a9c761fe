// Limit of xterm: 100,000 characters for the whole sequence. This is that limit in bytes before base64. Most others accept more.
const MAX_BYTES = 74_994;
// GNU screen passes through up to 768 bytes at once, including the wrapper.
const SCREEN_PIECE = 512;

/**
 * The sequence that copies `text` to the clipboard of the terminal (OSC 52), which also works over ssh. The terminal does not
 * confirm it. tmux ignores it unless `set-clipboard` is `on`; see tmux-buffer.ts.
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
