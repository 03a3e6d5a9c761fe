/** What `llmp demo` prints. */
import type { Demo } from '../../daemon/demo/demo.js';
import { dirname, join } from 'node:path';
import { shellWord } from '../../console/escape.js';

/** What a client has sent when the guide is shown. */
export const FIRST_MESSAGE = 'Hello';

/** Shown while the demo starts. */
export const starting = (hasPast: boolean) =>
  `Starting a daemon and a stand-in provider${hasPast ? ', with a week of simulated traffic' : ''} ...`;

/** @param upstreamKey what the stand-in provider accepts. */
const past = (upstreamKey: string) => `\
Five other projects have simulated clients, a week of traffic, and tokens in every state.
The provider rejects the key of project mobile.
To repair that, replace it (K in the terminal UI) by the key that the provider accepts: ${upstreamKey}
`;

/** Shown before the terminal UI opens. */
export const introduction = ({ url, managementTokenFile }: Demo, upstreamKey: string, hasPast: boolean) => `\
This is a daemon on this machine with a stand-in provider: ${url}
Nothing leaves this machine, and all data is in ${dirname(managementTokenFile)}.
${hasPast ? past(upstreamKey) : ''}
In the terminal UI:

1, 2, …  switch between the screens          ?   show all keys
Enter    open what is under the cursor       /   filter
x        revoke a token                      u   undo

Press q to leave. This stops the demo and removes its data.

`;

/** The file with the variables that the commands of the guide use. */
export const variablesFile = ({ managementTokenFile }: Demo) => join(dirname(managementTokenFile), 'demo-variables');

/**
 * For any shell. A program with another name than `llmp` is a function of that name there, so that all commands are short. `status` is
 * a builtin of fish, whose functions have another syntax, and no other shell has the option `-q` of `type`.
 */
export const variables = ({ url, managementTokenFile }: Demo, token: string, program: string) => `\
export LLMP_SERVER=${url}
export MANAGEMENT_TOKEN_FILE=${shellWord(managementTokenFile)}
export TOKEN=${token}
${program === 'llmp' ? '' : functionOf(program)}`;

const functionOf = (program: string) => `\
type -q status >/dev/null 2>&1 \\
  && eval ${anyShellWord(`function llmp; ${program} $argv; end`)} \\
  || eval ${anyShellWord(`llmp() { ${program} "$@"; }`)}
`;

/** In double quotes, because in single quotes fish reads a backslash as an escape character, and other shells do not. */
const anyShellWord = (text: string) => `"${text.replaceAll(/[\\"$`]/g, '\\$&')}"`;

const CHAT = `\
curl $LLMP_SERVER/v1/chat/completions -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "demo", "messages": [{"role": "user", "content": "${FIRST_MESSAGE}"}]}'`;

/**
 * At most 20 lines with those before and after it. There are no comments between the commands, because an interactive zsh would treat
 * them as arguments.
 *
 * @param reply what the stand-in provider replied to the first message. @param program as it was called.
 */
export const guide = (demo: Demo, { program, reply }: { program: string; reply: string }): string => `\
With a token, a client sent "${FIRST_MESSAGE}" to ${demo.url}. The reply:
${reply}

Open the terminal UI (? shows the keys), in another terminal${program.startsWith('npx ') ? ' in this folder' : ''}:
. ${shellWord(variablesFile(demo))}
llmp tui

Open the Admin UI in a browser. Log in with what the command prints:
${demo.url}/admin/
cat $MANAGEMENT_TOKEN_FILE

Send a request, revoke its token, and send the request again (401):
${CHAT}
llmp token revoke demo

More commands to try: llmp demo --examples`;

/** @param upstreamKey what the stand-in provider accepts. */
export const examples = (upstreamKey: string): string => `\
These commands are for the terminal with the variables of a running \`llmp demo\`.

Send a request:

${CHAT}

Send a request twice that allows its response to be cached. The second response comes from the cache (X-PROXY-CACHE: hit), and costs no use:

${CHAT} \\
  -H 'Cache-Control: public' -sD - -o /dev/null
${CHAT} \\
  -H 'Cache-Control: public' -sD - -o /dev/null

Stream the response with OpenAI's SDK for Node.js (npm install openai):

node --input-type=module <<'END'
import { env } from 'node:process';
import OpenAI from 'openai';
const { LLMP_SERVER, TOKEN } = env;
const client = new OpenAI({ baseURL: LLMP_SERVER + '/v1', apiKey: TOKEN });
const stream = await client.chat.completions.create({
  model: 'demo',
  messages: [{ role: 'user', content: '${FIRST_MESSAGE}' }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');
console.log();
END

Or with the SDK for Python (pip install openai):

python3 - <<'END'
import os
from openai import OpenAI
client = OpenAI(base_url=os.environ["LLMP_SERVER"] + "/v1", api_key=os.environ["TOKEN"])
stream = client.chat.completions.create(
    model="demo", messages=[{"role": "user", "content": "${FIRST_MESSAGE}"}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
END

Open a WebSocket, on which the provider echoes messages (npm install ws):

node --input-type=module <<'END'
import WebSocket from 'ws';
import { env } from 'node:process';
const { LLMP_SERVER, TOKEN } = env;
const url = LLMP_SERVER.replace('http:', 'ws:') + '/v1/realtime';
const socket = new WebSocket(url, { headers: { Authorization: 'Bearer ' + TOKEN } });
socket.on('error', ({ message }) => console.error(message));
socket.on('open', () => socket.send('${FIRST_MESSAGE}'));
socket.on('message', (message) => {
  console.log('Received', message.toString());
  socket.close();
});
END

Revoke the token, and reactivate it:

llmp token revoke demo --reason 'trying it out'
llmp token reactivate demo

Issue a token for two requests and one minute, and use it. The third request gets 429, and after a minute every request gets 401:

TOKEN=$(llmp token generate --project-id demo --max-requests 2 --duration 1m -q)
${CHAT}

Show the tokens, and the state of the daemon:

llmp token list
llmp status

The provider rejects the key of the simulated project mobile. Replace the key:

echo ${upstreamKey} | llmp project set-key mobile`;
