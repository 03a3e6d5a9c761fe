/** `llmp demo`: a daemon and a stand-in provider on this machine. Their code is in daemon/demo and is loaded only if the demo runs. */
import { dirname, join } from 'node:path';
import { integer } from '../../config/kinds.js';
import { ManagementClient } from '../../daemon/api/client.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { Demo, DemoOptions } from '../../daemon/demo/demo.js';
import { command, type Invocation } from '../command.js';
import { destinationOf } from '../connection/destination.js';
import { flag, value } from '../option.js';
import { shellWord } from '../../console/escape.js';
import { EXIT, Failure } from '../../console/failure.js';
import { reportedUser } from '../../console/reported-user.js';
import type { View } from '../../console/table.js';

const UPSTREAM_KEY = 'sk-demo-key-of-the-stand-in-provider';
const CALL_WITHIN_MS = 10_000;

const OPTIONS = {
  port: value('--port <PORT>', integer(1024, 65_535), 'port of the daemon (default: a free port)'),
  tui: flag('--tui', 'open the terminal UI; quitting it stops the demo'),
  empty: flag('--empty', 'start without the simulated projects, tokens, clients and their past'),
};

export const demoCommand = command({
  path: ['demo'],
  runsUnbundled: true,
  summary: 'try llmp on this machine, with a stand-in provider and a token',
  examples: [
    ['demo', 'print commands to paste into another terminal; ^C stops the demo and removes its data'],
    ['demo --port 8080', 'use this port'],
    ['demo --tui', 'open the terminal UI of the demo; quitting it stops the demo'],
    ['demo --empty', 'start without simulated clients and their past'],
  ],
  options: OPTIONS,
  async run(invocation) {
    const { shell, options, output } = invocation;
    if (options.tui) return runWithTui(invocation);
    const interrupted = shell.interrupted();
    const demo = await start(options, {
      onEnded({ method, path, status, code, durationMs }) {
        output.note(`${status} ${method} ${path} ${Math.round(durationMs)} ms ${code ?? ''}`.trimEnd());
      },
      onProblem: (message) => {
        output.warn(message);
      },
    });
    try {
      const token = await issueToken(demo);
      if (output.format === 'table') output.text(guide(demo, token, shell.program, options.empty ? '' : PAST));
      else await output.one(factsOf(demo, token), factsView);
      const others = options.empty ? '' : ', except those of the simulated clients';
      output.note(`Requests are listed here when they end${others}. Press ^C to stop the demo.`);
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
  const demo = await start(options, { onEnded: () => undefined, onProblem: (message) => problems.push(message) });
  let code: number = EXIT.done;
  try {
    await issueToken(demo);
    output.text(introduction(demo, options.empty ? '' : PAST));
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

async function start({ port = 0, empty = false }: DemoInvocation['options'], listeners: Listeners): Promise<Demo> {
  const { startDemo } = await import('../../daemon/demo/demo.js');
  return startDemo({ port, upstreamKey: UPSTREAM_KEY, hasPast: !empty, ...listeners }).catch((error: unknown) => {
    throw startFailure(error, port);
  });
}

function startFailure(error: unknown, port: number): unknown {
  if ((error as { code?: unknown }).code !== 'EADDRINUSE') return error;
  return new Failure(EXIT.unavailable, `cannot listen on port ${port}`, {
    why: 'it is in use',
    advice: 'Omit --port to use a free port',
    code: 'cannot_listen',
    cause: error,
  });
}

async function issueToken({ url, managementToken }: Demo): Promise<WireTokenCreated> {
  const client = new ManagementClient({
    server: url,
    managementToken,
    frontEnd: 'cli',
    user: reportedUser(),
    timeoutMs: CALL_WITHIN_MS,
    fetch,
  });
  const project = await client.createProject({ name: 'demo', api_key: UPSTREAM_KEY });
  return client.createToken({ project_id: project.id, name: 'demo', duration_hours: 1, max_requests: 100 });
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
  details: {},
};

const PAST = `\
Five other projects have simulated clients, a week of traffic, and tokens in every state. The provider rejects the key of project mobile.
`;

/** Shown before the terminal UI opens. */
const introduction = ({ url, managementTokenFile }: Demo, past: string) => `\
This is a daemon on this machine with a stand-in provider: ${url}
Nothing leaves this machine, and all data is in ${dirname(managementTokenFile)}.
${past}
In the terminal UI:

1, 2, …  switch between the screens          ?   show all keys
Enter    open what is under the cursor       /   filter
x        revoke a token                      u   undo

Press q to leave. This stops the demo and removes its data.

`;

/** There are no comments between the commands, because an interactive zsh would treat them as arguments. */
const guide = ({ url, managementTokenFile }: Demo, { id, token }: WireTokenCreated, program: string, past: string) => `\
A stand-in provider and a daemon are running on this machine, with a project and a token for one hour and 100 requests.
${past}
Send a request:

curl ${url}/v1/chat/completions -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'

Stream the response with OpenAI's SDK for Node.js (npm install openai):

node --input-type=module <<'END'
import OpenAI from 'openai';
const client = new OpenAI({ baseURL: '${url}/v1', apiKey: '${token}' });
const stream = await client.chat.completions.create({
  model: 'demo',
  messages: [{ role: 'user', content: 'Hello' }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');
console.log();
END

Or with the SDK for Python (pip install openai):

python3 - <<'END'
from openai import OpenAI
client = OpenAI(base_url="${url}/v1", api_key="${token}")
stream = client.chat.completions.create(
    model="demo", messages=[{"role": "user", "content": "Hello"}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
END

Open a WebSocket, on which the provider echoes messages (npm install ws):

node --input-type=module <<'END'
import WebSocket from 'ws';
const socket = new WebSocket('${url.replace('http:', 'ws:')}/v1/realtime', { headers: { Authorization: 'Bearer ${token}' } });
socket.on('error', ({ message }) => console.error(message));
socket.on('open', () => socket.send('Hello'));
socket.on('message', (message) => {
  console.log('Received', message.toString());
  socket.close();
});
END

Manage the daemon, in another terminal${program.startsWith('npx ') ? ' in the same folder' : ''}:

export LLMP_SERVER=${url} MANAGEMENT_TOKEN_FILE=${shellWord(managementTokenFile)}

Revoke the token, send the request again (401), and reactivate the token:

${program} token revoke ${id} --reason 'trying it out'
${program} token reactivate ${id}

Issue a token for two requests and one minute, and use it. The third request gets 429, and after a minute every request gets 401:

TOKEN=$(${program} token generate --project-id demo --max-requests 2 --duration 1m -q)
curl ${url}/v1/models -H "Authorization: Bearer $TOKEN"

Show the tokens, and the state of the daemon:

${program} token list
${program} status

Open the terminal UI (? shows the keys), or the Admin UI in a browser. Log in with the management token, which \`cat $MANAGEMENT_TOKEN_FILE\` prints:

${program} tui
${url}/admin/
`;
