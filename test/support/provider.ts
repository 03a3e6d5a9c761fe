/** A provider stand-in on a real socket: it responds as the provider would, and remembers what it received. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { completion, json, models, problem, streamChat, uploadedFile } from '../../daemon/demo/responses.js';

export { json };

export interface Received {
  method: string;
  url: string;
  rawHeaders: string[];
  headers: IncomingMessage['headers'];
  body: Buffer;
  /** Whether the connection closed before the response was complete. */
  wasAborted: boolean;
}

export type Answer = (req: IncomingMessage, res: ServerResponse, received: Received) => void | Promise<void>;

export interface Provider {
  url: string;
  server: Server;
  received: Received[];
  /** The responses to the next requests; undefined: as the provider would. */
  answer: Answer | undefined;
  /** Called when the head of a request has arrived, before its body. */
  onHead: ((received: Received) => void) | undefined;
  stop(): Promise<void>;
}

/** A response of JSON that is the same for each request. */
export const replies =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (_req, res) => {
    json(res, status, body, headers);
  };

export async function startProvider(): Promise<Provider> {
  const server = createServer((req, res) => {
    res.sendDate = false; // It would be by another clock than that of the test.
    void serve(provider, req, res);
  });
  server.keepAliveTimeout = 60_000;
  const provider: Provider = {
    url: '',
    server,
    received: [],
    answer: undefined,
    onHead: undefined,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return provider;
}

async function serve(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const received: Received = {
    method: req.method ?? '',
    url: req.url ?? '',
    rawHeaders: req.rawHeaders,
    headers: req.headers,
    body: Buffer.alloc(0),
    wasAborted: false,
  };
  provider.received.push(received);
  res.on('close', () => {
    received.wasAborted = !res.writableFinished;
  });
  provider.onHead?.(received);
  try {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    received.body = Buffer.concat(pieces);
    await (provider.answer ?? asTheProvider)(req, res, received);
  } catch {
    res.destroy();
  }
}

async function asTheProvider(_req: IncomingMessage, res: ServerResponse, received: Received): Promise<void> {
  const { method, url, headers, body } = received;
  const path = new URL(url, 'http://provider').pathname;
  if (method === 'GET' && path === '/v1/models') {
    json(res, 200, models('gpt-test'));
  } else if (path === '/v1/chat/completions') {
    const request = JSON.parse(body.toString()) as { stream?: boolean; model: string };
    if (request.stream) await streamChat(res, request.model, ['Hel', 'lo ', 'wörld']);
    else json(res, 200, completion(request.model, 'Hello there'));
  } else if (path === '/v1/files') {
    json(res, 200, { ...uploadedFile(body), content_type: headers['content-type'] });
  } else if (path === '/v1/echo') {
    res.writeHead(200, { 'content-type': headers['content-type'] ?? 'application/octet-stream' });
    res.end(body);
  } else {
    json(res, 404, problem(`no such path: ${path}`, 'unknown_url'));
  }
}
