// What xterm takes in one sequence, 100,000 characters with its frame, in bytes before base64. Most others take more.
const MOST_BYTES = 74_994;
// GNU screen's limit for what it passes on at once is 768, frame included.
const SCREEN_PIECE = 512;

/**
 * What makes the terminal put `text` into its clipboard (OSC 52), also from the far end of an ssh. Nobody answers
 * whether it did: tmux, for one, does only with `set-clipboard on`.
 *
 * @returns undefined where `text` is longer than terminals take.
 */
export function clipboardSequence(text: string, env: NodeJS.ProcessEnv): string | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length > MOST_BYTES) return undefined;
  const sequence = `\x1b]52;c;${bytes.toString('base64')}\x07`;
  // tmux takes it as it is. screen knows it only as something to be passed on, in pieces.
  const isScreen = env.TMUX === undefined && (env.STY !== undefined || /^screen/.test(env.TERM ?? ''));
  if (!isScreen) return sequence;
  const pieces = sequence.match(new RegExp(`[^]{1,${SCREEN_PIECE}}`, 'g')) ?? [];
  return pieces.map((piece) => `\x1bP${piece}\x1b\\`).join('');
}
