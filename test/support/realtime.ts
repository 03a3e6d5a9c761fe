/** The provider's realtime API, as far as tests use it: WebSockets that the test sends and receives on. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws';
import { eventually } from './eventually.js';
import { perSuite } from './per-test.js';
import type { Environment } from '../../config/settings.js';
import type { Provider } from './provider.js';
import { ProxyFixture } from './proxy-fixture.js';

export interface Conversation {
  /** The provider's end. */
  socket: WebSocket;
  req: IncomingMessage;
}

export class Realtime {
  readonly conversations: Conversation[] = [];
  readonly #server: WebSocketServer;
  readonly #clients: WebSocket[] = [];

  /** Accepts every upgrade that reaches the provider. */
  constructor({ server }: Provider) {
    this.#server = new WebSocketServer({ server, perMessageDeflate: true });
    this.#server.on('connection', (socket, req) => {
      socket.on('error', () => undefined);
      this.conversations.push({ socket, req });
    });
  }

  /** One for all tests of a suite, with the daemon in front of it. */
  static forSuite(env: Environment = {}): { scene: ProxyFixture; realtime: Realtime } {
    // In this order: the daemon waits for WebSockets to end.
    afterEach(() => {
      realtime.end();
    });
    after(() => {
      realtime.close();
    });
    const scene = ProxyFixture.forSuite(env);
    const realtime = perSuite(() => new Realtime(scene.provider));
    return { scene, realtime };
  }

  /** A client of the daemon, whose handshake may still be in progress. */
  client(url: string, secret: string | null, protocols: string[] = [], options: ClientOptions = {}): WebSocket {
    const headers = { ...(secret !== null && { authorization: `Bearer ${secret}` }), ...options.headers };
    const client = new WebSocket(url.replace('http:', 'ws:'), protocols, { ...options, headers });
    client.on('error', () => undefined);
    this.#clients.push(client);
    return client;
  }

  /** Both ends of an open WebSocket. */
  async begin(
    url: string,
    secret: string,
    { target = '/v1/realtime', options = {} }: { target?: string; options?: ClientOptions } = {},
  ): Promise<Conversation & { client: WebSocket }> {
    const before = this.conversations.length;
    const client = this.client(`${url}${target}`, secret, [], options);
    await once(client, 'open');
    await eventually('it is at the provider', () => this.conversations.length > before);
    return { client, ...this.conversations[before]! };
  }

  /** Runs after each test. */
  end(): void {
    for (const client of this.#clients.splice(0)) client.terminate();
    for (const { socket } of this.conversations.splice(0)) socket.terminate();
  }

  close(): void {
    this.end();
    this.#server.close();
  }
}

/** The next message that arrives there, as text. */
export async function nextMessage(socket: WebSocket): Promise<string> {
  const [message] = (await once(socket, 'message')) as [Buffer];
  return message.toString();
}
