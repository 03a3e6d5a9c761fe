/** A server with responses that a real daemon cannot be made to send. It records its requests. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
}

export interface StandIn {
  url: string;
  asked: Asked[];
  answer: (req: IncomingMessage, res: ServerResponse) => void;
  stop(): Promise<void>;
}

/** @param socketPath the socket to listen on, in place of a free port. */
export async function startStandIn(socketPath?: string): Promise<StandIn> {
  const server = createServer((req, res) => {
    standIn.asked.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers });
    req.resume();
    standIn.answer(req, res);
  });
  await new Promise<void>((resolve) => {
    if (socketPath === undefined) server.listen(0, '127.0.0.1', resolve);
    else server.listen(socketPath, resolve);
  });
  const standIn: StandIn = {
    url: socketPath === undefined ? `http://127.0.0.1:${(server.address() as AddressInfo).port}` : `unix:${socketPath}`,
    asked: [],
    answer: (_req, res) => {
      answerJson(res, 200, []);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
  return standIn;
}

export function answerJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const text = JSON.stringify(body);
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers });
  res.end(text);
}

/** A response that is the same for each request. */
export function responds(body: unknown, status = 200, headers: Record<string, string> = {}): StandIn['answer'] {
  return (_req, res) => {
    answerJson(res, status, body, headers);
  };
}

export const refuse = (status: number, code: string, error: string, headers: Record<string, string> = {}) =>
  responds({ error, code, request_id: 'req-1' }, status, headers);
