/** The provider of the agents, directly and through the daemon. Whose request it is, it knows by the key. */
import { type WebSocket, WebSocketServer } from 'ws';
import { json } from '../../daemon/demo/responses.js';
import { ANTHROPIC } from '../sdks/dialects/anthropic.js';
import type { Asked, Dialect } from '../sdks/dialects/dialect.js';
import { GOOGLE } from '../sdks/dialects/google.js';
import { OPENAI } from '../sdks/dialects/openai.js';
import { responseEvents } from '../sdks/dialects/openai-responses.js';
import { type Provider, startProvider } from '../support/provider.js';
import { type ModelRequest, replyOfModel } from './model.js';

export interface SeenRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** What the stand-in said that a request cost. */
export interface Reported {
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
}

/** What became of the requests with one key. */
export interface Account {
  seen: SeenRequest[];
  reported: Reported;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The key of a request, in whatever header it is. */
export function keyOf(headers: Headers): string {
  const { authorization, 'x-api-key': anthropic, 'x-goog-api-key': google } = headers;
  const bearer = /^Bearer (.*)$/i.exec(typeof authorization === 'string' ? authorization : '')?.[1];
  return bearer ?? [anthropic, google].find((each) => typeof each === 'string')?.toString() ?? '';
}

/** Tokens of each response (test/sdks/dialects), as `/manage/usage` counts them. */
const TOKENS = { openai: [3, 2], anthropic: [3 + 5 + 7, 2], google: [3, 2] } as const;

export class StandIn {
  readonly #accounts = new Map<string, Account>();
  readonly #rejected = new Set<string>();
  readonly #sockets: WebSocketServer;
  readonly #provider: Provider;

  private constructor(provider: Provider) {
    this.#provider = provider;
    this.#sockets = new WebSocketServer({
      server: provider.server,
      verifyClient: ({ req }, done) => {
        if (this.#rejected.has(keyOf(req.headers))) done(false, 401, JSON.stringify(wrongKey(OPENAI)));
        else done(true);
      },
    });
    this.#sockets.on('connection', (socket, { headers, url }) => {
      this.#converse(socket, headers, url ?? '');
    });
    provider.answer = (req, res, { method, url, body }) => {
      const key = keyOf(req.headers);
      const path = new URL(url, 'http://provider').pathname;
      const dialect = dialectOf(path, req.headers);
      if (method === 'HEAD') res.writeHead(200).end();
      else if (this.#rejected.has(key)) json(res, 401, wrongKey(dialect));
      else {
        const asked = body.length > 0 ? (JSON.parse(body.toString()) as Asked & ModelRequest) : { model: '' };
        this.#note(key, { method, path: url, headers: req.headers as Record<string, string>, body: body.toString() });
        this.#count(key, path, asked);
        dialect.respond(res, path, { ...asked, reply: replyOfModel(asked) });
      }
    };
  }

  static async start(): Promise<StandIn> {
    return new StandIn(await startProvider());
  }

  get url(): string {
    return this.#provider.url;
  }

  /** What became of the requests with this key. */
  of(key: string): Account {
    const account = this.#accounts.get(key) ?? {
      seen: [],
      reported: { requests: 0, prompt_tokens: 0, completion_tokens: 0 },
    };
    this.#accounts.set(key, account);
    return account;
  }

  /** From now on requests with this key get a 401. */
  reject(key: string): void {
    this.#rejected.add(key);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#sockets.close();
    await this.#provider.stop();
  }

  /** Responses over a WebSocket. A request that continues a response contains only what is new. */
  #converse(socket: WebSocket, headers: Headers, url: string): void {
    const key = keyOf(headers);
    socket.on('error', () => undefined);
    socket.on('message', (message: Buffer) => {
      const asked = JSON.parse(message.toString()) as Asked & ModelRequest & { type: string };
      if (asked.type !== 'response.create') return;
      this.#note(key, {
        method: 'WS',
        path: url,
        headers: headers as Record<string, string>,
        body: message.toString(),
      });
      this.#count(key, '/v1/responses', { ...asked, stream: true });
      for (const event of responseEvents({ ...asked, reply: replyOfModel(asked) })) socket.send(JSON.stringify(event));
    });
  }

  #note(key: string, request: SeenRequest): void {
    this.of(key).seen.push(request);
  }

  #count(key: string, path: string, { stream, stream_options: options, generate }: Asked): void {
    const { reported } = this.of(key);
    reported.requests++;
    if (generate === false) return;
    if (/\/models$|count_?tokens/i.test(path)) return;
    // Of chat completions, only those tell it that are asked to.
    if (path === '/v1/chat/completions' && stream && !options?.include_usage) return;
    const api = path === '/v1/messages' ? 'anthropic' : path.includes(':') ? 'google' : 'openai';
    const [prompt, completion] = TOKENS[api];
    reported.prompt_tokens += prompt;
    reported.completion_tokens += completion;
  }
}

function dialectOf(path: string, headers: Headers): Dialect {
  if (path.includes(':') || 'x-goog-api-key' in headers) return GOOGLE;
  return path.startsWith('/v1/messages') || 'anthropic-version' in headers ? ANTHROPIC : OPENAI;
}

const wrongKey = (dialect: Dialect) =>
  dialect.failure({
    status: 401,
    type: 'authentication_error',
    code: 'invalid_api_key',
    message: 'the key of the provider is wrong',
  });
