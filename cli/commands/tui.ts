/** `llmp tui`: the terminal UI. Its code is in tui/ and is loaded only if it runs. */
import { setFlagsFromString } from 'node:v8';
import { oneOf } from '../../config/kinds.js';
import type { ContextSummary } from '../../tui/state/exchange.js';
import type { Tab } from '../../tui/state/state.js';
import type { TerminalIo } from '../../console/terminal-io.js';
import type { Folders } from '../../tui/settings/settings.js';
import type { Connected } from '../../tui/effects/runner.js';
import { command, type Invocation } from '../command.js';
import { OF_OUTPUT } from '../globals.js';
import { flag, value } from '../option.js';
import {
  type ConnectInputs,
  type AuthenticatedConnection,
  connectWithToken,
  fullFetchTo,
} from '../connection/connection.js';
import { readContexts, settingsFolder, stateFolder } from '../connection/contexts.js';
import { destinationOf } from '../connection/destination.js';
import { visible } from '../../console/escape.js';
import { EXIT, usage } from '../../console/failure.js';
import type { Shell } from '../shell.js';
import { span } from '../../console/span.js';

const SCREENS = ['overview', 'tokens', 'projects', 'audit', 'cache', 'events', 'top'] as const satisfies readonly Tab[];
const SHORTEST_REFRESH_MS = 500;
const DEFAULT_REFRESH_MS = 2_000;

const OPTIONS = {
  screen: value('--screen <SCREEN>', oneOf(...SCREENS), `first screen: ${SCREENS.join(', ')} (default: tokens)`),
  refresh: value('--refresh <DURATION>', span, 'refresh interval (default: 2s)'),
  readonly: flag('--readonly', 'refuse changes'),
  ascii: flag('--ascii', 'use ASCII only (LLMP_ASCII)'),
  mouse: flag('--mouse', 'use the mouse: the wheel scrolls, a click selects, a second click opens'),
  once: flag('--once', 'print one frame, then exit'),
  printKeys: flag('--print-keys', 'print the keys in effect, as a keys file, then exit'),
};

export const tuiCommand = command({
  path: ['tui'],
  runsUnbundled: true,
  ignores: ['reason', ...OF_OUTPUT],
  summary: 'open the terminal UI: tokens, projects, audit log, cache and events',
  examples: [
    ['tui', 'open the terminal UI; ? shows the keys'],
    ['tui -c prod --readonly', 'view another daemon without the risk of changing anything'],
    ['tui --screen events', 'watch requests live'],
    ['tui --print-keys', 'list the keys, as a keys file'],
    ['tui --once --screen overview', 'print one frame, even without a terminal'],
  ],
  options: OPTIONS,
  async run(invocation) {
    const { shell, options } = invocation;
    if (options.printKeys) return printKeys(shell);
    const code = await openTui(invocation);
    // The terminal is restored and all output is written. An open connection of a library must not delay the exit.
    if (!options.once) (await shell.terminal()).exit(code);
    return code;
  },
});

type TuiInvocation = ConnectInputs &
  Pick<Invocation<typeof OPTIONS>, 'options'> & {
    /** What ends with the terminal UI, such as `the demo`. */
    quitEnds?: string;
  };

/** Runs the terminal UI until the operator quits. @returns the exit code. @throws {Failure} without a terminal or a connection. */
export async function openTui(invocation: TuiInvocation): Promise<number> {
  const { shell, options, globals, quitEnds = null } = invocation;
  // Frames are short-lived garbage. Without this flag V8 grows the young generation to 48 MB instead of collecting more often.
  setFlagsFromString('--semi-space-growth-factor=1');
  const refreshMs = options.refresh ?? DEFAULT_REFRESH_MS;
  if (refreshMs < SHORTEST_REFRESH_MS) throw usage(`--refresh must be at least ${SHORTEST_REFRESH_MS / 1000} seconds`);
  if (options.ascii) shell.env.LLMP_ASCII = '1';
  if (globals.color === false) shell.env.NO_COLOR = '1';
  const io = await shell.terminal();
  if (!options.once) await refuseUnusable(io);
  const folders = foldersIn(shell.env);
  const settings = await settingsFor(io, folders);
  const isReadonly = options.readonly ?? false;
  const { readSaved, changeSaved } = await import('../../tui/settings/saved-file.js');
  const connect = async (inputs: ConnectInputs) => {
    const connection = await connectWithToken(inputs);
    const { target, client } = connectedTo(connection, await fullFetchTo(connection.server), isReadonly);
    const { saved, problems } = await readSaved(folders.config, target);
    return { connected: { target, client, saved }, problems };
  };
  const { connected, problems } = await connect(invocation);
  let current = connected.target.context;
  const start = options.once
    ? (await import('../../tui/once.js')).printOnce
    : (await import('../../tui/start.js')).startTui;
  return start(io, {
    connected,
    tab: options.screen ?? 'tokens',
    refreshMs,
    quitEnds,
    hasMouse: options.mouse ?? false,
    settings: { ...settings, problems: [...settings.problems, ...problems] },
    stateFolder: folders.state,
    async connect(context) {
      const other = await connect(await inputsForContext(context, invocation));
      current = context;
      return other.connected;
    },
    contexts: () => contextsShown(shell.env, current),
    save: (target, change) => changeSaved(folders.config, target, change),
  });
}

const foldersIn = (env: NodeJS.ProcessEnv): Folders => ({ config: settingsFolder(env), state: stateFolder(env) });

async function settingsFor(io: TerminalIo, folders: Folders) {
  const { readSettings } = await import('../../tui/settings/settings.js');
  const { capabilitiesOf } = await import('../../tui/terminal/capabilities.js');
  const { colours } = capabilitiesOf(io);
  return readSettings(folders, colours === 'none' ? '16' : colours);
}

async function printKeys({ env, stdout, stderr }: Shell): Promise<number> {
  const { readKeys } = await import('../../tui/settings/settings.js');
  const { keysFileText } = await import('../../tui/settings/keys-file.js');
  const { customKeys, problems } = await readKeys(foldersIn(env).config);
  for (const problem of problems) stderr.write(`llmp: ${visible(problem)}\n`);
  stdout.write(keysFileText(customKeys));
  return EXIT.done;
}

/** @throws {Failure} if there is no terminal that can show the terminal UI. */
export async function refuseUnusable(io: TerminalIo): Promise<void> {
  const { capabilitiesOf } = await import('../../tui/terminal/capabilities.js');
  const { unusable } = capabilitiesOf(io);
  if (unusable === undefined) return;
  throw usage('the terminal UI needs a terminal', {
    why: unusable,
    advice: 'Use commands such as `llmp token list`, or print one frame with --once',
  });
}

/** Inputs for a connection to another context. They contain only its own credentials: those of the previous daemon must not be sent to it. */
async function inputsForContext(context: string, invocation: ConnectInputs): Promise<ConnectInputs> {
  const env = { ...invocation.shell.env, MANAGEMENT_TOKEN: '', MANAGEMENT_TOKEN_FILE: '' };
  const none = { managementToken: undefined, managementTokenFile: undefined, server: undefined };
  const globals = { ...invocation.globals, ...none, context };
  const destination = await destinationOf(globals, env);
  return { ...invocation, globals, shell: { ...invocation.shell, env }, destination: () => destination };
}

function connectedTo(
  { server, context, managementToken, timeoutMs }: AuthenticatedConnection,
  fetch: Connected['client']['fetch'],
  isReadonly: boolean,
): Omit<Connected, 'saved'> {
  return {
    target: {
      server: server.shown,
      context: context?.name ?? null,
      color: context?.color ?? null,
      isProtected: context?.protected ?? false,
      isReadonly: isReadonly || (context?.readonly ?? false),
      project: context?.projectId ?? null,
    },
    client: { server: server.url, managementToken, fetch, timeoutMs },
  };
}

async function contextsShown(env: NodeJS.ProcessEnv, current: string | null): Promise<ContextSummary[]> {
  const { contexts } = await readContexts(env);
  return Object.entries(contexts).map(([name, context]) => ({
    name,
    server: context.server,
    isCurrent: name === current,
    isProtected: context.protected ?? false,
    isReadonly: context.readonly ?? false,
    color: context.color ?? null,
  }));
}
