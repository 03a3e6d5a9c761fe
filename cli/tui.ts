/** `llmp tui`: the terminal UI. What runs is in tui/, loaded only here. */
import { oneOf } from '../config/kinds.js';
import type { ContextShown } from '../tui/state/exchange.js';
import type { Connected } from '../tui/effects/runner.js';
import { command, flag, type Invocation, value } from './command.js';
import { type Reach, reach } from './connection.js';
import { readContexts } from './contexts.js';
import { destinationOf } from './destination.js';
import { EXIT, usage } from './failure.js';
import { serverOf } from './server.js';
import { span } from './span.js';

const SCREENS = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events'] as const;
const SHORTEST_REFRESH_MS = 500;
const DEFAULT_REFRESH_MS = 2_000;

export const tuiCommand = command({
  path: ['tui'],
  summary: 'look at tokens, projects, audit, cache and events in full screen, and change them',
  examples: [
    ['tui', '? shows the keys'],
    ['tui -c prod --readonly', 'look at production, and change nothing'],
    ['tui --screen events', 'requests as they come'],
    ['tui --once --screen overview', 'one frame, also where there is no terminal'],
  ],
  options: {
    screen: value('--screen <SCREEN>', oneOf(...SCREENS), `what is shown first: ${SCREENS.join(', ')}; tokens unless given`),
    refresh: value('--refresh <DURATION>', span, 'how often the daemon is asked; 2s unless given'),
    readonly: flag('--readonly', 'change nothing'),
    ascii: flag('--ascii', 'no symbols beyond ASCII (LLMP_ASCII)'),
    once: flag('--once', 'print one frame, and end'),
  },
  async run(invocation) {
    const { shell, options, globals, output } = invocation;
    const refreshMs = options.refresh ?? DEFAULT_REFRESH_MS;
    if (refreshMs < SHORTEST_REFRESH_MS) throw usage(`--refresh must be at least ${SHORTEST_REFRESH_MS / 1000} seconds`);
    if (options.ascii) shell.env.LLMP_ASCII = '1';
    if (globals.color === false) shell.env.NO_COLOR = '1';
    const io = shell.terminal();
    if (!options.once) refuseUnusable((await import('../tui/terminal/capabilities.js')).capabilitiesOf(io).unusable);
    const isReadonly = options.readonly ?? false;
    const connected = connectedTo(await reach(invocation), isReadonly);
    if (reachIsClear(connected)) output.warn(`the management token goes to ${connected.place.server} in clear text; use https`);
    const { startTui, printOnce } = await import('../tui/start.js');
    const start = options.once ? printOnce : startTui;
    return start(io, {
      connected,
      tab: options.screen ?? 'tokens',
      refreshMs,
      connect: (context) => connectTo(context, invocation, isReadonly),
      contexts: () => contextsShown(invocation, connected),
    });
  },
});
