/**
 * A process: the provider stand-in, a bare node:http server. It also runs a second time as the baseline `bare node:http`. It returns a chat
 * completion, the list of models, or with `?pieces=N&every_ms=N` an event stream. It prints `listening URL` when it is ready.
 */
import { createServer, type ServerResponse } from 'node:http';
import { completion } from '../../daemon/demo/responses.js';
import { announce } from './announce.js';
import { modelList } from './model-list.js';
import { DONE, stampedPiece } from './piece.js';

const body = Buffer.from(JSON.stringify(completion('gpt-4o-mini', 'Hello there, how can I help you today?')));
const headersOf = ({ length }: Buffer) =>
  [
    ['content-type', 'application/json'],
    ['content-length', String(length)],
    ['x-request-id', 'req_0123456789abcdef'],
  ].flat();
const headers = headersOf(body);
const modelListHeaders = headersOf(modelList);

const server = createServer((req, res) => {
  req.on('end', () => {
    const stream = /\?pieces=(\d+)&every_ms=(\d+)$/.exec(req.url ?? '');
    if (stream) {
      streamPieces(res, Number(stream[1]), Number(stream[2]));
      return;
    }
    const isModels = req.url === '/v1/models';
    res.writeHead(200, isModels ? modelListHeaders : headers);
    res.end(isModels ? modelList : body);
  });
  req.resume();
});

function streamPieces(res: ServerResponse, pieces: number, everyMs: number): void {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  res.write(stampedPiece());
  let sent = 1;
  const timer = setInterval(() => {
    if (sent++ < pieces) res.write(stampedPiece());
    else res.end(DONE);
  }, everyMs);
  res.on('close', () => {
    clearInterval(timer);
  });
}

server.keepAliveTimeout = 60_000;
announce(server);
