/** `llmp demo`: a daemon and a stand-in provider on this machine. Their code is in daemon/demo and is loaded only if the demo runs. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { integer } from '../../config/kinds.js';
import { connectionProblem, ManagementClient, Unreachable } from '../../daemon/api/client.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { Demo, DemoOptions } from '../../daemon/demo/demo.js';
import { command, type Invocation } from '../command.js';
import { destinationOf } from '../connection/destination.js';
import { DEFAULT_TIMEOUT_MS, OF_OUTPUT, OF_REQUESTS, optionsGiven } from '../globals.js';
import { flag, value } from '../option.js';
import { examples, FIRST_MESSAGE, guide, introduction, starting, variables, variablesFile } from './demo-guide.js';
import { EXIT, Failure, failureOf, usage } from '../../console/failure.js';
import { reportedUser } from '../../console/reported-user.js';
import type { View } from '../../console/table.js';

const UPSTREAM_KEY = 'sk-demo-key-of-the-stand-in-provider';
const HOST = 'http://127.0.0.1';

const OPTIONS = {
  port: value('--port <PORT>', integer(1024, 65_535), 'port of the daemon (default: a free port)'),
  tui: flag('--tui', 'open the terminal UI; quitting it stops the demo'),
  empty: flag('--empty', 'start without the simulated projects, tokens, clients and their past'),
  examples: flag('--examples', 'print more commands for a running demo, without starting one'),
};

export const demoCommand = command({
  path: ['demo'],
  runsUnbundled: true,
  ignores: OF_REQUESTS.filter((key) => key !== 'timeout'),
  summary: 'try llmp on this machine, with a stand-in provider and a token',
  examples: [
    ['demo', 'print commands for another terminal; ^C stops the demo and removes its data'],
    ['demo --port 8080', 'use this port'],
    ['demo --tui', 'open the terminal UI of the demo; quitting it stops the demo'],
    ['demo --empty', 'start without simulated clients and their past'],
    ['demo --examples', 'print more commands: SDKs, the cache, a WebSocket, and a token that ends soon'],
  ],
  options: OPTIONS,
  async run(invocation) {
    const { shell, options, globals, output } = invocation;
    if (options.examples) {
      if (Object.keys(options).length > 1) throw usage('--examples starts no demo', { advice: 'Use it alone' });
      output.text(examples(UPSTREAM_KEY));
      return EXIT.done;
    }
    const [format] = optionsGiven(OF_OUTPUT, globals);
    if (options.tui && format !== undefined) {
      throw usage(`--tui and ${format} exclude each other`, { advice: 'Use one of them' });
    }
    if (options.tui) return runWithTui(invocation);
    const interrupted = shell.interrupted();
    let isFirst = output.format === 'table'; // The guide tells of the first one.
    const demo = await start(invocation, {
      onEnded({ method, path, status, code, durationMs }) {
        if (isFirst) {
          isFirst = false;
          return;
        }
        output.note(`${status} ${method} ${path} ${Math.round(durationMs)} ms ${code ?? ''}`.trimEnd());
      },
      onProblem: (message) => {
        output.warn(message);
      },
    });
    try {
      const token = await issueToken(demo, invocation);
      if (output.format === 'table') {
        const reply = await firstReply(demo, token, invocation);
        const { program } = shell;
        await writeFile(variablesFile(demo), variables(demo, token.token, program), { mode: 0o600 });
        output.text(guide(demo, { program, reply }));
      } else await output.one(factsOf(demo, token), factsView);
      output.note('Requests are listed here when they end. Press ^C to stop the demo.');
      await interrupted;
    } finally {
      await demo.stop();
    }
    output.note(STOPPED);
    return EXIT.done;
  },
});

const STOPPED = 'Stopped. All data of the demo was removed.';

/** Opens the terminal UI in front of the demo, which stops when it is left. */
async function runWithTui(invocation: DemoInvocation): Promise<number> {
  const { shell, options, output, input, globals } = invocation;
  const { openTui, refuseUnusable } = await import('./tui.js');
  const io = await shell.terminal();
  await refuseUnusable(io);
  const interrupted = shell.interrupted();
  const problems: string[] = [];
  const demo = await start(invocation, { onEnded: () => undefined, onProblem: (message) => problems.push(message) });
  let code: number = EXIT.done;
  try {
    await issueToken(demo, invocation);
    output.text(introduction(demo, UPSTREAM_KEY, !options.empty));
    const isReady = await Promise.race([input.confirm('Open the terminal UI?', true), interrupted.then(() => false)]);
    if (isReady) code = await openTui(await tuiInvocationOf(demo, invocation, globals));
  } finally {
    await demo.stop();
  }
  for (const problem of problems) output.warn(problem);
  output.note(STOPPED);
  io.exit(code);
  return code;
}

type DemoInvocation = Invocation<typeof OPTIONS>;

/** Its settings and history are in the folder of the demo, and it connects to nothing else. */
async function tuiInvocationOf(
  { url, managementTokenFile }: Demo,
  { shell, input, output }: DemoInvocation,
  { color, timeout }: DemoInvocation['globals'],
) {
  const folder = dirname(managementTokenFile);
  const env = { ...shell.env, LLMP_CONFIG: join(folder, 'config.toml'), XDG_STATE_HOME: folder, MANAGEMENT_TOKEN: '' };
  const globals = { server: url, managementTokenFile, color, timeout };
  const destination = await destinationOf(globals, env);
  return {
    shell: { ...shell, env },
    input,
    output,
    globals,
    destination: () => destination,
    options: { screen: 'overview' as const },
    quitEnds: 'the demo',
  };
}

type Listeners = Pick<DemoOptions, 'onEnded' | 'onProblem'>;

async function start(invocation: DemoInvocation, listeners: Listeners): Promise<Demo> {
  const { port = 0, empty = false } = invocation.options;
  // It takes seconds on a slow machine, most of them without a turn of the event loop: a later message would come too late.
  if (invocation.shell.stderr.isTTY) invocation.output.note(starting(!empty));
  const { startDemo } = await import('../../daemon/demo/demo.js');
  const timeoutMs = timeoutOf(invocation);
  return startDemo({ port, upstreamKey: UPSTREAM_KEY, hasPast: !empty, timeoutMs, ...listeners }).catch(
    async (error: unknown) => {
      throw await startFailure(error, port);
    },
  );
}

/** The daemon is in this process, and late only on a slow machine: then a user can raise it. */
const timeoutOf = ({ globals }: DemoInvocation) => globals.timeout ?? DEFAULT_TIMEOUT_MS;

async function startFailure(error: unknown, port: number): Promise<unknown> {
  const { SettingsError } = await import('../../config/settings.js');
  // The demo chooses all settings: what remains is an installation without SQLite.
  if (error instanceof SettingsError)
    return new Failure(EXIT.configuration, error.message, { code: 'configuration', cause: error });
  // It names this daemon, not the one of the command line.
  if (error instanceof Unreachable) return failureOf(error, port === 0 ? HOST : `${HOST}:${port}`);
  if ((error as { code?: unknown }).code !== 'EADDRINUSE') return error;
  return new Failure(EXIT.unavailable, `cannot listen on port ${port}`, {
    why: 'it is in use',
    advice: 'Omit --port to use a free port',
    code: 'cannot_listen',
    cause: error,
  });
}

async function issueToken({ url, managementToken }: Demo, invocation: DemoInvocation): Promise<WireTokenCreated> {
  const client = new ManagementClient({
    server: url,
    managementToken,
    frontEnd: 'cli',
    user: reportedUser(),
    timeoutMs: timeoutOf(invocation),
    fetch,
  });
  try {
    const project = await client.createProject({ name: 'demo', api_key: UPSTREAM_KEY });
    return await client.createToken({ project_id: project.id, name: 'demo', duration_hours: 1, max_requests: 100 });
  } catch (error) {
    throw failureOf(error, url);
  }
}

/** Sends a client's request with the token. @returns what the stand-in provider replied. */
async function firstReply({ url }: Demo, { token }: WireTokenCreated, invocation: DemoInvocation): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: FIRST_MESSAGE }] }),
    signal: AbortSignal.timeout(timeoutOf(invocation)),
  }).catch((error: unknown) => {
    throw failureOf(new Unreachable(connectionProblem(error), { cause: error }), url);
  });
  const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
  return choices[0].message.content;
}

interface DemoFacts {
  server: string;
  management_token_file: string;
  project_id: string;
  token_id: string;
  token: string;
}

const factsOf = ({ url, managementTokenFile }: Demo, token: WireTokenCreated): DemoFacts => ({
  server: url,
  management_token_file: managementTokenFile,
  project_id: token.project_id,
  token_id: token.id,
  token: token.token,
});

const factsView: View<DemoFacts> = {
  idOf: ({ token_id }) => token_id,
  fields: ['server', 'management_token_file', 'project_id', 'token_id', 'token'],
  columns: [],
};
