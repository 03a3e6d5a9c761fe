/** `llmp tui`: connects terminal, state, effects and Ink. Modules that are slow to load are imported here, after the start. */
import { setTimeout as sleep } from 'node:timers/promises';
import { visible, withoutSecrets } from '../console/escape.js';
import { Runner } from './effects/runner.js';
import { openRenderer, stateAtStart, lookOf, type TuiOptions } from './options.js';
import type { Renderer } from './renderer.js';
import type { Action } from './state/exchange.js';
import type { State } from './state/state.js';
import { CommandHistory } from './settings/history.js';
import { Store } from './store.js';
import type { TerminalIo } from '../console/terminal-io.js';
import type { Input } from './terminal/keys.js';
import { openTerminal } from './terminal/terminal.js';

/** How long to wait at exit for the response to a pending change, or for a file. It is short because the shell must be back immediately. */
const LAST_ANSWERS_MS = 150;

/** Runs until the operator quits or a signal ends it. Reports on stderr a change whose result is unknown. @returns the exit code. */
export async function startTui(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { connected, connect, contexts, save } = options;
  const secrets = secretsOf(connected);
  const mask = (text: string) => withoutSecrets(text, secrets).split('\n').map(visible).join('\n');
  const terminal = openTerminal(io, { mask, hasMouse: options.hasMouse });
  const history = new CommandHistory(options.stateFolder);
  let renderer: Renderer | undefined;
  const show = () => {
    terminal.show(() => renderer?.linesOf(store.state) ?? []);
  };
  const runner: Runner = new Runner(
    {
      act: (action) => {
        store.act(action);
      },
      async connect(context) {
        // Connecting may prompt for the management token.
        const found = await terminal.lend(() => connect(context));
        secrets.push(...secretsOf(found));
        return found;
      },
      contexts,
      save,
      terminal,
      remember(line) {
        history.add(line, secrets);
      },
      quit: (code) => {
        terminal.close(code);
      },
    },
    connected,
  );
  const store: Store = new Store({
    state: stateAtStart(options, lookOf(terminal.capabilities), terminal.size),
    now: Date.now,
    run: (effect) => {
      runner.run(effect);
    },
    changed: show,
  });
  terminal.onInput((input) => {
    store.act(actionOf(input));
  });
  terminal.onResize((size) => {
    store.act({ on: 'resized', ...size });
  });
  store.act({ on: 'began' });
  // The first requests are in flight by now. Quitting does not wait for this import.
  const loaded = await Promise.race([openRenderer(), terminal.ended]);
  if (typeof loaded === 'object') {
    renderer = loaded;
    show();
  }
  const code = await terminal.ended;
  renderer?.close();
  const { pendingChanges } = store.state;
  if (pendingChanges.length > 0) {
    await runner.drainChanges(LAST_ANSWERS_MS);
    io.stderr.write(`llmp: ${mask(lastWords(store.state))}\n`);
  }
  runner.end();
  await Promise.race([Promise.all([history.written(), runner.saved()]), sleep(LAST_ANSWERS_MS)]);
  return code;
}

function actionOf(input: Input): Action {
  if (input.kind === 'key') return { on: 'key', key: input.key };
  if (input.kind === 'paste') return { on: 'paste', text: input.text };
  const { what, column, row } = input;
  return { on: 'mouse', what, column, row };
}

/** The message printed after the screen is closed, when a change was still pending. */
function lastWords({ pendingChanges, message }: State): string {
  if (pendingChanges.length === 0) return message?.words ?? '';
  return 'the daemon has not confirmed the last change; check it with: llmp audit list';
}

const secretsOf = ({ client: { managementToken } }: TuiOptions['connected']): string[] =>
  managementToken === null ? [] : [managementToken];
