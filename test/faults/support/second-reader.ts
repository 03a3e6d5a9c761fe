/** Reads the bytes that an upstream received with Node's server, to compare the result with that of our own reader. */
import { createServer, type IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { ScriptedUpstream } from './upstream.js';

interface Read {
  start: string;
  fields: string[];
  body: string;
  isComplete: boolean;
}

/** @returns the requests, and the rest that is not a request. */
async function readByNode(bytes: Buffer): Promise<{ requests: Read[]; mistakes: string[] }> {
  const mistakes: string[] = [];
  const arrived: { req: IncomingMessage; body: Buffer[] }[] = [];
  const server = createServer({ maxHeaderSize: 1024 * 1024 }, (req, res) => {
    const request = { req, body: [] as Buffer[] };
    arrived.push(request);
    req.on('data', (piece: Buffer) => request.body.push(piece));
    req.on('error', () => undefined); // It ends early.
    res.end();
  });
  server.maxHeadersCount = 0;
  const wire = new Duplex({
    read: () => undefined,
    write: (_piece, _encoding, done) => {
      done();
    },
  });
  server.on('clientError', (error: NodeJS.ErrnoException) => {
    mistakes.push(error.code ?? error.message);
  });
  server.emit('connection', wire);
  wire.push(bytes);
  await turn();
  const requests = arrived.map(({ req, body }) => ({
    start: `${req.method ?? ''} ${req.url ?? ''} HTTP/${req.httpVersion}`,
    fields: req.rawHeaders,
    body: Buffer.concat(body).toString('latin1'),
    isComplete: req.complete,
  }));
  wire.destroy();
  return { requests, mistakes };
}

/** I6: every reader of the upstream's bytes reads the same requests. */
export async function expectOneReading(upstream: ScriptedUpstream): Promise<void> {
  for (const [connection, bytes] of upstream.received.entries()) {
    const requests = upstream.exchanges
      .filter((exchange) => exchange.connection === connection)
      .map(({ request: { startLine, fields, body, isComplete } }) => ({
        start: startLine,
        fields: fields.flat(),
        body: body.toString('latin1'),
        isComplete,
      }));
    expect(await readByNode(bytes), 'I6: an upstream connection as Node reads it').to.deep.equal({
      requests,
      mistakes: [],
    });
  }
}
