/**
 * A process: the baseline for a cache hit. What node:http alone takes to return the model list from memory: no upstream, no admission, no
 * lookup. It does not change in a commit that changes the daemon.
 * `node bare-server.js` prints `listening URL` when it is ready.
 */
import { createServer } from 'node:http';
import { announce } from './announce.js';
import { modelList } from './model-list.js';

const headers = ['content-type', 'application/json', 'content-length', String(modelList.length)];

const server = createServer((req, res) => {
  req.on('end', () => {
    res.writeHead(200, headers);
    res.end(modelList);
  });
  req.resume();
});

server.keepAliveTimeout = 60_000;
announce(server);
