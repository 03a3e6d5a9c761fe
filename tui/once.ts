/** `llmp tui --once`: prints one frame and exits, for scripts. */
import { stripVTControlCharacters } from 'node:util';
import { visible } from '../console/escape.js';
import { EXIT } from '../console/failure.js';
import { Runner } from './effects/runner.js';
import { openRenderer, stateAtStart, lookOf, type TuiOptions } from './options.js';
import type { State } from './state/state.js';
import { Store } from './store.js';
import { capabilitiesOf } from './terminal/capabilities.js';
import { fitLine } from './terminal/fit.js';
import type { TerminalIo } from '../console/terminal-io.js';

const WITHIN_MS = 10_000;

/** Prints one frame as soon as its data is loaded. @returns exit code 6 when the daemon sent no response. */
export async function printOnce(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { env, stdout } = io;
  const capabilities = capabilitiesOf(io);
  const size = {
    columns: stdout.columns ?? (Number(env.COLUMNS) || 80),
    rows: stdout.rows ?? (Number(env.LINES) || 24),
  };
  const look = { ...lookOf(capabilities), ...(!stdout.isTTY && { hasColor: false }) };
  for (const problem of options.settings.problems) io.stderr.write(`llmp: ${visible(problem)}\n`);
  const withoutNotice = { ...options, settings: { ...options.settings, problems: [] } };
  const state = await settled(options, stateAtStart(withoutNotice, look, size));
  const renderer = await openRenderer();
  const lines = renderer.linesOf(state).map((line) => fitLine(line, size.columns, capabilities.isUtf8).trimEnd());
  renderer.close();
  const text = `${lines.join('\n')}\n`;
  stdout.write(stdout.isTTY ? text : stripVTControlCharacters(text));
  return state.connection.respondedMs === null ? EXIT.unreachable : EXIT.done;
}

/** The state once the first requests have completed, or after WITHIN_MS. */
async function settled({ connected, connect, contexts, save }: TuiOptions, state: State): Promise<State> {
  return new Promise((resolve) => {
    const asked = new Set<string>();
    const end = () => {
      clearTimeout(timer);
      runner.end();
      resolve(store.state);
    };
    const timer = setTimeout(end, WITHIN_MS);
    const nothing = () => undefined;
    const terminal = { copy: () => Promise.resolve(null), suspend: nothing, repaint: nothing };
    const runner: Runner = new Runner(
      {
        act(action) {
          store.act(action);
          if (action.on === 'loaded' || action.on === 'failed') asked.delete(JSON.stringify(action.request));
          if (asked.size === 0) end();
        },
        connect,
        contexts,
        save,
        terminal,
        remember: nothing,
        quit: end,
      },
      connected,
    );
    const store: Store = new Store({
      state,
      now: Date.now,
      run(effect) {
        // One frame needs no streams and no refresh.
        if (effect.do !== 'load') return;
        asked.add(JSON.stringify(effect.request));
        runner.run(effect);
      },
      changed: nothing,
    });
    store.act({ on: 'began' });
  });
}
