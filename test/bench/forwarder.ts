/**
 * A process: the baseline. The least that a forwarder with node:http and undici does, written as its documentation suggests: no admission,
 * no check, no timeout. It does not change in a commit that changes the daemon.
 * `node forwarder.js UPSTREAM_URL` prints `listening URL` when it is ready.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { Pool } from 'undici';
import { announce } from './announce.js';

const HOP_BY_HOP = new Set([
  'connection',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const pool = new Pool(process.argv[2] ?? '', { connections: 1024 });

const server = createServer((req, res) => {
  const pieces: Buffer[] = [];
  req.on('data', (piece: Buffer) => pieces.push(piece));
  req.on('end', () => {
    const body = pieces.length === 0 ? null : Buffer.concat(pieces);
    pool.dispatch(
      { method: req.method ?? 'GET', path: req.url ?? '/', headers: endToEnd(req.headers), body },
      {
        onRequestStart() {
          // Nothing to do, but undici knows by it which interface this is.
        },
        onResponseStart(_controller, status, headers) {
          if (status >= 200) res.writeHead(status, endToEnd(headers));
        },
        onResponseData(controller, piece) {
          if (res.write(piece)) return;
          controller.pause();
          res.once('drain', () => {
            controller.resume();
          });
        },
        onResponseEnd() {
          res.end();
        },
        onResponseError() {
          if (!res.headersSent) res.writeHead(502);
          res.end();
        },
      },
    );
  });
});

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {};
  for (const name in headers) if (!HOP_BY_HOP.has(name)) kept[name] = headers[name];
  return kept;
}

server.keepAliveTimeout = 60_000;
announce(server);
