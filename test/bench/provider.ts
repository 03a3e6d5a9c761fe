/**
 * A process: the stand-in provider, a bare node:http server. Started a second time as the baseline `bare node:http`.
 * Prints `listening URL` when it is ready.
 */
import { createServer } from 'node:http';
import { completion } from '../../daemon/demo/answers.js';
import { announce } from './announce.js';

const body = Buffer.from(JSON.stringify(completion('gpt-4o-mini', 'Hello there, how can I help you today?')));
const headers = [
  ['content-type', 'application/json'],
  ['content-length', String(body.length)],
  ['x-request-id', 'req_0123456789abcdef'],
].flat();

const server = createServer((req, res) => {
  req.on('end', () => {
    res.writeHead(200, headers);
    res.end(body);
  });
  req.resume();
});
server.keepAliveTimeout = 60_000;
announce(server);
