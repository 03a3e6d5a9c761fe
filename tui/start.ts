/** `llmp tui`: terminal, state, effects and Ink, put together. What costs time to load is loaded here, and only now. */
import { stripVTControlCharacters } from 'node:util';
import { visible, withoutSecrets } from '../cli/escape.js';
import { EXIT } from '../cli/failure.js';
import { type Connected, Runner, type RunnerOptions } from './effects/runner.js';
import { begin } from './state/beginning.js';
import type { Look, State, Tab } from './state/state.js';
import { Store } from './store.js';
import { type Capabilities, capabilitiesOf, prepareLibraries } from './terminal/capabilities.js';
import type { Size, TerminalIo } from './terminal/io.js';
import { openTerminal } from './terminal/terminal.js';

export interface TuiOptions extends Pick<RunnerOptions, 'connect' | 'contexts'> {
  connected: Connected;
  tab: Tab;
  refreshMs: number;
}

const lookOf = ({ hasSymbols, colours, hasMotion }: Capabilities): Look => ({
  ascii: !hasSymbols,
  hasColor: colours !== 'none',
  isStill: !hasMotion,
});

const stateOf = ({ connected, tab, refreshMs }: TuiOptions, capabilities: Capabilities, size: Size): State =>
  begin({ size, look: lookOf(capabilities), place: connected.place, nowMs: Date.now(), tab, refreshMs });

/** Runs until it is quit, or ended from outside. @returns the exit code. */
export async function startTui(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { connected, connect, contexts } = options;
  const secrets = [connected.client.managementToken];
  const terminal = await openTerminal(io, {
    mask: (text) => withoutSecrets(text, secrets).split('\n').map(visible).join('\n'),
  });
  const { frameOf } = await import('./frame.js');

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
    state: stateOf(options, terminal.capabilities, terminal.size),
    now: Date.now,
    run: (effect) => {
      runner.run(effect);
    },
    changed: (state) => {
      terminal.render(frameOf(state));
    },
  });
  terminal.onInput((input) => {
    store.act(input.kind === 'key' ? { on: 'key', key: input.key } : { on: 'paste', text: input.text });
  });
  terminal.onResize((size) => {
    store.act({ on: 'resized', ...size });
  });
  terminal.render(frameOf(store.state));
  store.act({ on: 'began' });
  const code = await terminal.ended;
  runner.end();
  return code;
}

/** One frame of it, as soon as all that it shows was answered. @returns exit 6 when nothing was. */
export async function printOnce(io: TerminalIo, options: TuiOptions): Promise<number> {
  const { env, stdout } = io;
  const capabilities = capabilitiesOf(io);
  const size = {
    columns: stdout.columns ?? (Number(env.COLUMNS) || 80),
    rows: stdout.rows ?? (Number(env.LINES) || 24),
  };
  prepareLibraries(env, stdout.isTTY ? capabilities : { colours: 'none' });
  const [{ frameOf }, { textOf }] = await Promise.all([import('./frame.js'), import('./terminal/once.js')]);

  const state = await settled(options, stateOf(options, capabilities, size));
  const text = textOf(frameOf(state), size, capabilities.isUtf8);
  stdout.write(`${stdout.isTTY ? text : stripVTControlCharacters(text)}\n`);
  return state.connection.answeredMs === null ? EXIT.unreachable : EXIT.done;
}

/** The state when everything was answered that was asked at first, or after that long. */
async function settled({ connected, connect, contexts }: TuiOptions, state: State): Promise<State> {
  const WITHIN_MS = 10_000;
  return new Promise((resolve) => {
    const asked = new Set<string>();
    const end = () => {
      clearTimeout(timer);
      runner.end();
      resolve(store.state);
    };
    const timer = setTimeout(end, WITHIN_MS);
    const nothing = () => undefined;
    const terminal = { copy: () => false, suspend: nothing, repaint: nothing };
    const runner: Runner = new Runner(
      {
        act(action) {
          store.act(action);
          if (action.on === 'answered' || action.on === 'failed') asked.delete(JSON.stringify(action.question));
          if (asked.size === 0) end();
        },
        connect,
        contexts,
        terminal,
        quit: end,
      },
      connected,
    );
    const store: Store = new Store({
      state,
      now: Date.now,
      run(effect) {
        // One look is enough: nothing is followed, and nothing asked again.
        if (effect.do !== 'ask') return;
        asked.add(JSON.stringify(effect.question));
        runner.run(effect);
      },
      changed: nothing,
    });
    store.act({ on: 'began' });
  });
}
