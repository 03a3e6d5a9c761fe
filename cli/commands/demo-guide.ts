/** What `llmp demo` prints. */
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import type { Demo } from '../../daemon/demo/demo.js';
import { dirname } from 'node:path';
import { shellWord } from '../../console/escape.js';

/** What a client has sent when the guide is shown. */
export const FIRST_MESSAGE = 'Hello';

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

/** There are no comments between the commands, because an interactive zsh would treat them as arguments. */
export function guide(
  { url, managementTokenFile }: Demo,
  { id, token }: WireTokenCreated,
  { program, reply, upstreamKey, hasPast }: { program: string; reply: string; upstreamKey: string; hasPast: boolean },
): string {
  const chatWith = (authorization: string) =>
    `${url}/v1/chat/completions -H ${authorization} -H 'Content-Type: application/json' -d '{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'`;
  const chat = chatWith(`'Authorization: Bearer ${token}'`);
  return `\
A stand-in provider and a daemon are running on this machine, with a project and a token for one hour and 100 requests.
${hasPast ? past(upstreamKey) : ''}
A client sent "${FIRST_MESSAGE}" with the token, the daemon forwarded it with the provider's key instead, and the response was:

${reply}

Send a request yourself:

curl ${chat}

Send a request twice that allows its response to be cached. The second response comes from the cache (X-PROXY-CACHE: hit), and costs no use:

curl -sD - -o /dev/null ${chat} -H 'Cache-Control: public'
curl -sD - -o /dev/null ${chat} -H 'Cache-Control: public'

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
curl ${chatWith('"Authorization: Bearer $TOKEN"')}

Show the tokens, and the state of the daemon:

${program} token list
${program} status

${hasPast ? `Replace the key of project mobile, whose requests fail:\n\necho ${upstreamKey} | ${program} project set-key mobile\n\n` : ''}Open the terminal UI (? shows the keys), or the Admin UI in a browser. Log in with the management token, which \`cat $MANAGEMENT_TOKEN_FILE\` prints:

${program} tui
${url}/admin/
`;
}
