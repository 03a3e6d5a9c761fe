/** `llmp tui`: terminal, state, effects and Ink, put together. What costs time to load is loaded here, and only now. */
import type { ReactNode } from 'react';
import { visible, withoutSecrets } from '../console/escape.js';
import { Runner } from './effects/runner.js';
import { firstState, lookOf, type TuiOptions } from './first-state.js';
import { linesOf } from './lines.js';
import type { State } from './state/state.js';
import { Store } from './store.js';
import type { TerminalIo } from '../console/terminal-io.js';
import { openTerminal } from './terminal/terminal.js';

/** A change that was sent just before the end is waited for so long: the shell is to be back at once. */
const LAST_ANSWERS_MS = 150;

/** Runs until it is quit, or ended from outside. What the last change came to is said on stderr. @returns the exit code. */
export async function startTui(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { connected, connect, contexts } = options;
  const secrets = [connected.client.managementToken];
  const mask = (text: string) => withoutSecrets(text, secrets).split('\n').map(visible).join('\n');
  const terminal = openTerminal(io, { mask });
  const ink: { frameOf?: (state: State) => ReactNode } = {};
  const show = (state: State) => {
    if (ink.frameOf) terminal.render(ink.frameOf(state));
    else terminal.paint(linesOf(state));
  };
  const runner: Runner = new Runner(
    {
      act: (action) => {
        store.act(action);
      },
      async connect(context) {
        // Its management token may have to be asked for.
        const found = await terminal.lend(() => connect(context));
        secrets.push(found.client.managementToken);
        return found;
      },
      contexts,
      terminal,
      quit: (code) => {
        terminal.close(code);
      },
    },
    connected,
  );
  const store: Store = new Store({
    state: firstState(options, lookOf(terminal.capabilities), terminal.size),
    now: Date.now,
    run: (effect) => {
      runner.run(effect);
    },
    changed: show,
  });
  terminal.onInput((input) => {
    store.act(input.kind === 'key' ? { on: 'key', key: input.key } : { on: 'paste', text: input.text });
  });
  terminal.onResize((size) => {
    store.act({ on: 'resized', ...size });
  });
  show(store.state);
  store.act({ on: 'began' });
  // Everything that is asked is on its way by then. Who quits while it loads does not wait for it.
  const loaded = await Promise.race([import('./frame.js'), terminal.ended]);
  if (typeof loaded === 'object') {
    ink.frameOf = loaded.frameOf;
    show(store.state);
  }
  const code = await terminal.ended;
  const { underWay } = store.state;
  if (underWay.length > 0) {
    await runner.lastAnswers(LAST_ANSWERS_MS);
    io.stderr.write(`llmp: ${mask(lastWords(store.state))}\n`);
  }
  runner.end();
  return code;
}

/** What became of a change that was on its way when the screen was left. */
function lastWords({ underWay, message }: State): string {
  if (underWay.length === 0) return message?.words ?? '';
  return 'the daemon has not answered the last change; `llmp audit list` shows whether it was made';
}
