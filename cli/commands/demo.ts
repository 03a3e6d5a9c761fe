/** `llmp demo`: everything on one machine, to try it out. What runs is in daemon/demo, loaded only here. */
import { integer } from '../../config/kinds.js';
import { ManagementClient } from '../../daemon/api/client.js';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { Demo } from '../../daemon/demo/demo.js';
import { command } from '../command.js';
import { value } from '../option.js';
import { shellWord } from '../../console/escape.js';
import { EXIT, Failure } from '../../console/failure.js';
import type { View } from '../../console/table.js';

const UPSTREAM_KEY = 'sk-demo-key-of-the-stand-in-provider';
const CALL_WITHIN_MS = 10_000;

export const demoCommand = command({
  path: ['demo'],
  summary: 'try llmp on this machine, with a stand-in provider and a token',
  examples: [
    ['demo', 'prints commands to paste into another terminal; ^C stops it and removes everything'],
    ['demo --port 8080', 'on a port of your choice'],
  ],
  options: {
    port: value('--port <PORT>', integer(1024, 65_535), 'port of the daemon (default: a free port)'),
  },
  async run({ shell, options: { port = 0 }, output }) {
    const interrupted = shell.interrupted();
    const { startDemo } = await import('../../daemon/demo/demo.js');
    const demo = await startDemo({
      port,
      upstreamKey: UPSTREAM_KEY,
      onEnded({ method, path, status, code, durationMs }) {
        output.note(`${status} ${method} ${path} ${Math.round(durationMs)} ms ${code ?? ''}`.trimEnd());
      },
      onProblem: (message) => {
        output.warn(message);
      },
    }).catch((error: unknown) => {
      throw startFailure(error, port);
    });
    try {
      const token = await issueToken(demo);
      if (output.format === 'table') output.text(guide(demo, token, shell.program));
      else await output.one(factsOf(demo, token), factsView);
      output.note('Requests are listed here when they end. Press ^C to stop the demo.');
      await interrupted;
    } finally {
      await demo.stop();
    }
    output.note('Stopped. All data of the demo was removed.');
    return EXIT.done;
  },
});

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
    timeoutMs: CALL_WITHIN_MS,
    fetch,
  });
  const project = await client.createProject({ name: 'demo', api_key: UPSTREAM_KEY });
  return client.createToken({ project_id: project.id, name: 'demo', duration_hours: 1, max_requests: 100 });
}

interface Facts {
  server: string;
  management_token_file: string;
  project_id: string;
  token_id: string;
  token: string;
}

const factsOf = ({ url, managementTokenFile }: Demo, token: WireTokenCreated): Facts => ({
  server: url,
  management_token_file: managementTokenFile,
  project_id: token.project_id,
  token_id: token.id,
  token: token.token,
});

const factsView: View<Facts> = {
  idOf: ({ token_id }) => token_id,
  fields: ['server', 'management_token_file', 'project_id', 'token_id', 'token'],
  columns: [],
  details: {},
};

/** Without comments between the commands: an interactive zsh would take them for arguments. */
const guide = ({ url, managementTokenFile }: Demo, { id, token }: WireTokenCreated, program: string) => `\
A stand-in provider and the daemon run on this machine, with a project, and a token for an hour and 100 requests.

Ask something:

curl ${url}/v1/chat/completions -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'

The same word by word, with OpenAI's SDK for Node.js (npm install openai):

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

Or for Python (pip install openai):

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

A WebSocket, on which it sends back what it is sent (npm install ws):

node --input-type=module <<'END'
import WebSocket from 'ws';
const socket = new WebSocket('${url.replace('http:', 'ws:')}/v1/realtime', { headers: { Authorization: 'Bearer ${token}' } });
socket.on('error', ({ message }) => console.error(message));
socket.on('open', () => socket.send('Hello'));
socket.on('message', (message) => {
  console.log('It says', message.toString());
  socket.close();
});
END

Now be the operator, in another terminal${program.startsWith('npx ') ? ' in the same folder' : ''}:

export LLMP_SERVER=${url} MANAGEMENT_TOKEN_FILE=${shellWord(managementTokenFile)}

Take the token back, ask again (401), and let it be used again:

${program} token revoke ${id} --reason 'trying it out'
${program} token reactivate ${id}

A token for two requests and one minute; the third gets 429, and after the minute it is 401:

${program} token generate --max-requests 2 --duration 1m

What there is now:

${program} token list
${program} status

The same in full screen (? shows the keys), and in a browser, where the management token is what \`cat $MANAGEMENT_TOKEN_FILE\` prints:

${program} tui
${url}/admin/
`;
