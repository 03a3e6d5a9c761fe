/** `llmp tui`: terminal, state, effects and Ink, put together. What costs time to load is loaded here, and only now. */
import type { ReactNode } from 'react';
import { visible, withoutSecrets } from '../cli/escape.js';
import { Runner } from './effects/runner.js';
import { firstState, lookOf, type TuiOptions } from './first-state.js';
import { linesOf } from './lines.js';
import type { State } from './state/state.js';
import { Store } from './store.js';
import type { TerminalIo } from './terminal/io.js';
import { openTerminal } from './terminal/terminal.js';

/** Runs until it is quit, or ended from outside. @returns the exit code. */
export async function startTui(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { connected, connect, contexts } = options;
  const secrets = [connected.client.managementToken];
  const terminal = openTerminal(io, {
    mask: (text) => withoutSecrets(text, secrets).split('\n').map(visible).join('\n'),
  });
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
  // Everything that is asked is on its way by then.
  ink.frameOf = (await import('./frame.js')).frameOf;
  show(store.state);
  const code = await terminal.ended;
  runner.end();
  return code;
}
