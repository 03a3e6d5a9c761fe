/** Stand-in provider on this machine. It responds by quoting the request, as a stream word by word. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { MODEL_FACTS, MODELS } from './cast.js';
import { completion, json, models, problem, streamChat, uploadedFile } from './responses.js';

// Long enough to be visible, and short enough not to be annoying.
const BETWEEN_WORDS_MS = 120;

export interface StandIn {
  url: string;
  stop(): Promise<void>;
}

/** @param key the only credential that it accepts. A request with another one was not forwarded correctly. */
export async function startStandIn(key: string): Promise<StandIn> {
  const server = createServer((req, res) => {
    serve(key, req, res).catch(() => res.destroy());
  });
  const realtime = echo(key, server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        for (const client of realtime.clients) client.terminate();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Echoes the messages on /v1/realtime. */
function echo(key: string, server: Server): WebSocketServer {
  const realtime = new WebSocketServer({
    server,
    path: '/v1/realtime',
    maxPayload: MAX_MESSAGE_BYTES,
    verifyClient: ({ req }: { req: IncomingMessage }) => req.headers.authorization === `Bearer ${key}`,
  });
  realtime.on('connection', (client) => {
    client.on('error', () => {
      client.terminate();
    });
    client.on('message', (message, isBinary) => {
      client.send(message, { binary: isBinary });
    });
  });
  return realtime;
}

async function serve(key: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const body = await buffer(req);
  if (req.headers.authorization !== `Bearer ${key}`) {
    json(res, 401, problem('wrong API key: expected the upstream key of the demo project', 'invalid_api_key'));
    return;
  }
  const { pathname } = new URL(req.url ?? '', 'http://provider');
  switch (`${req.method} ${pathname}`) {
    case 'GET /v1/models':
      json(res, 200, models('demo', 'demo-mini', MODELS.mini, MODELS.large, MODELS.open));
      return;
    case 'POST /v1/chat/completions':
      return chat(body, res);
    case 'POST /v1/files':
      json(res, 200, uploadedFile(body));
      return;
    default:
      json(res, 404, problem(`the stand-in provider does not support ${req.method} ${pathname}`, 'unknown_url'));
  }
}

interface ChatRequest {
  model?: unknown;
  stream?: unknown;
  messages?: { content?: unknown }[];
}

async function chat(body: Buffer, res: ServerResponse): Promise<void> {
  const request = chatRequest(body);
  if (!request) {
    json(res, 400, problem('the body must be JSON with messages', 'invalid_json'));
    return;
  }
  const model = typeof request.model === 'string' ? request.model : 'demo';
  if (model === MODELS.retired) {
    json(res, 404, problem(`the model ${model} has been retired`, 'model_not_found'));
    return;
  }
  const facts = MODEL_FACTS[model];
  // The models of the simulated clients take their time, so that the latencies are credible.
  if (facts) await pause(facts.usualMs * (0.5 + Math.random()));
  const reply = `You said ${textOf(request.messages?.at(-1)?.content)}. I am a stand-in provider on this machine.`;
  if (request.stream === true) await streamChat(res, model, words(reply));
  else json(res, 200, completion(model, reply, facts && usageOf(facts)));
}

/** Model tokens around the average of the model. */
const usageOf = ({ prompt, completion: reply }: { prompt: number; completion: number }) => ({
  prompt: Math.round(prompt * (0.4 + 1.2 * Math.random())),
  completion: Math.round(reply * (0.4 + 1.2 * Math.random())),
});

function chatRequest(body: Buffer): ChatRequest | null {
  try {
    const request: unknown = JSON.parse(body.toString());
    const isChat = typeof request === 'object' && request !== null && 'messages' in request;
    return isChat && Array.isArray(request.messages) ? (request as ChatRequest) : null;
  } catch {
    return null;
  }
}

/** Quotes the content of a message, which may also be a list of parts. */
function textOf(content: unknown): string {
  return JSON.stringify(content ?? '');
}

async function* words(reply: string): AsyncGenerator<string> {
  for (const word of reply.split(/(?<= )/)) {
    yield word;
    await pause(BETWEEN_WORDS_MS);
  }
}
