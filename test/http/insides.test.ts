/**
 * Insides of other packages that the product relies on, as ARCHITECTURE.md lists them: what is missing after an upgrade of Node.js or of a package
 * fails here first, by its name. What each is used for has its own tests.
 */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import util from 'node:util';
import * as zlib from 'node:zlib';
import { expect } from 'chai';
import httpProxy from 'http-proxy';
import { Sequelize, Transaction } from 'sequelize';
import sequelizeErrors from 'sequelize/lib/errors';
import sqlite3 from 'sqlite3';
import buildConnector from 'undici/lib/core/connect.js';
import undiciErrors from 'undici/lib/core/errors.js';
import Client from 'undici/lib/dispatcher/client.js';

type Insides = Record<string, unknown>;
const insidesOf = (value: unknown) => value as Insides;

describe('insides of other packages that llmp relies on', () => {
  let server: http.Server;
  let port: number;
  let serve: (req: IncomingMessage, res: ServerResponse) => void;

  before(async () => {
    server = http.createServer((req, res) => {
      serve(req, res);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Sends these bytes. @returns all that the server sends. */
  async function exchange(text: string): Promise<string> {
    const socket = net.connect(port, '127.0.0.1');
    socket.end(text);
    let received = '';
    for await (const bytes of socket) received += String(bytes);
    return received;
  }

  const POST = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi';

  it('Node: the parser of a connection, its hooks and its pause', async () => {
    let parser: Insides = {};
    let isOfSocket = false;
    server.once('connection', (socket: Socket) => {
      parser = insidesOf(insidesOf(socket).parser);
      isOfSocket = socket.listeners('data').length > 0;
      const onIncoming = parser.onIncoming as (this: unknown, ...args: unknown[]) => number;
      parser.onIncoming = function (...args: unknown[]) {
        onIncoming.apply(this, args);
        return 21; // Pauses after the head.
      };
    });
    const paused = once(server, 'clientError');
    serve = () => undefined;
    const sent = exchange(POST);
    const [error, socket] = (await paused) as [Error & { code: string; rawPacket: Buffer }, Socket];
    expect(error).to.include({ code: 'HPE_PAUSED' });
    expect(error.rawPacket.toString(), 'error.rawPacket').to.equal(POST);
    expect(error, 'error.bytesParsed').to.have.property('bytesParsed', POST.length - 'hi'.length);
    for (const hook of ['kOnMessageBegin', 'kOnExecute', 'kOnBody', 'kOnMessageComplete'])
      expect(insidesOf(parser.constructor)[hook], hook).to.be.a('number');
    expect(parser._headers, 'parser._headers').to.be.an('array');
    expect(parser._consumed, 'parser._consumed').to.be.a('boolean');
    expect(isOfSocket, "Node's own listener for data").to.equal(true);
    socket.destroy();
    await sent.catch(() => undefined);
  });

  it('Node: an upgrade with a body, of which nothing is parsed', async () => {
    let isUpgrade: unknown;
    server.once('connection', (socket: Socket) => {
      const parser = insidesOf(insidesOf(socket).parser);
      const onIncoming = parser.onIncoming as (this: unknown, ...args: unknown[]) => number;
      parser.onIncoming = function (...args: unknown[]) {
        onIncoming.apply(this, args);
        isUpgrade = insidesOf(args[0]).upgrade;
        return 2; // Ends what is parsed after the head.
      };
    });
    const upgraded = once(server, 'upgrade');
    const sent = exchange(POST.replace('close', 'upgrade\r\nUpgrade: other'));
    const [req, socket, rest] = (await upgraded) as [IncomingMessage, Socket, Buffer];
    expect(isUpgrade, 'req.upgrade').to.equal(true);
    expect([req.complete, rest.toString()]).to.deep.equal([true, 'hi']);
    expect(socket, 'the connection itself').to.equal(req.socket);
    socket.destroy();
    await sent;
  });

  it('Node: the current response of a connection', async () => {
    let current: unknown;
    serve = (req, res) => {
      current = insidesOf(req.socket)._httpMessage === res;
      req.resume();
      res.end();
    };
    await exchange(POST);
    expect(current, 'socket._httpMessage').to.equal(true);
  });

  it('Node: the body of a request, as its parser hands it over', async () => {
    const pushed: (string | null)[] = [];
    serve = (req, res) => {
      const insides = insidesOf(req);
      expect(insides._consuming, '_consuming').to.be.a('boolean');
      expect(insidesOf(insides._readableState), '_readableState').to.include({ ended: false, endEmitted: false });
      req._read(0);
      insides.push = (chunk: Buffer | null) => {
        pushed.push(chunk === null ? null : String(chunk));
        if (chunk === null) res.end('seen');
        return true;
      };
    };
    expect(await exchange(POST)).to.contain('seen');
    expect(pushed, 'req.push').to.deep.equal(['hi', null]);
  });

  it('Node: the head of a response as text, and a list of small writes', async () => {
    let list: unknown;
    serve = (req, res) => {
      req.resume();
      res.writeHead(200, ['Content-Length', '4']);
      const insides = insidesOf(res);
      expect(insides._header, '_header').to.be.a('string').that.contains('Content-Length: 4');
      expect(insides._hasBody, '_hasBody').to.equal(true);
      const writer = req.socket;
      const { _write: write } = insidesOf(writer);
      expect(write, 'socket._write').to.be.a('function');
      insidesOf(writer)._writev = (chunks: { chunk: string; encoding: string }[], done: () => void) => {
        list = chunks.map(({ chunk, encoding }) => [chunk, encoding]);
        writer._write(`${String(insides._header)}seen`, 'latin1', done);
      };
      writer.cork();
      writer.write('a', 'latin1');
      writer.write('b', 'latin1');
      process.nextTick(() => {
        writer.uncork();
        writer.end();
      });
    };
    expect(await exchange(POST)).to.match(/^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\nseen$/);
    expect(list, 'socket._writev').to.deep.equal([
      ['a', 'latin1'],
      ['b', 'latin1'],
    ]);
  });

  it('Node: the handle beneath a socket, its progress and its limits', async () => {
    serve = (req, res) => {
      const handle = insidesOf(insidesOf(req.socket)._handle);
      for (const method of ['readStart', 'readStop']) expect(handle[method], method).to.be.a('function');
      expect(handle.reading, 'reading').to.be.a('boolean');
      for (const count of ['bytesWritten', 'writeQueueSize']) expect(handle[count], count).to.be.a('number');
      for (const state of ['_readableState', '_writableState']) {
        insidesOf(insidesOf(req.socket)[state]).highWaterMark = 12_345;
      }
      expect(req.socket.readableHighWaterMark, '_readableState.highWaterMark').to.equal(12_345);
      expect(req.socket.writableHighWaterMark, '_writableState.highWaterMark').to.equal(12_345);
      res.end('seen');
    };
    expect(await exchange(POST)).to.contain('seen');
  });

  it('Node: decompression of one part at a time', () => {
    const packed = zlib.gzipSync('once upon a time');
    for (const open of [zlib.createGunzip, zlib.createBrotliDecompress]) {
      const stream = insidesOf(open());
      expect(insidesOf(stream._handle).writeSync, '_handle.writeSync').to.be.a('function');
      expect(insidesOf(stream._handle).reset, '_handle.reset').to.be.a('function');
      expect(stream._writeState, '_writeState').to.be.instanceOf(Uint32Array);
    }
    const stream = insidesOf(zlib.createGunzip());
    const output = Buffer.alloc(100);
    const handle = stream._handle as { writeSync(...args: unknown[]): void };
    handle.writeSync(zlib.constants.Z_SYNC_FLUSH, packed, 0, packed.length, output, 0, output.length);
    const [outputLeft = 0, inputLeft] = stream._writeState as Uint32Array;
    expect(output.toString('latin1', 0, output.length - outputLeft)).to.equal('once upon a time');
    expect(inputLeft).to.equal(0);
  });

  it('Node and http-proxy: its first listener for an upgrade joins the connections; it takes util._extend', () => {
    expect(Object.getOwnPropertyDescriptor(util, '_extend'), 'util._extend').to.include({ configurable: true });
    const proxy = httpProxy.createProxyServer({}).on('error', () => undefined);
    let request: http.ClientRequest | undefined;
    proxy.on('proxyReqWs', (each: http.ClientRequest) => (request = each));
    const req = Object.assign(new Readable({ read: () => undefined }), {
      method: 'GET',
      url: '/',
      headers: { upgrade: 'websocket' },
      connection: {},
      socket: {},
    });
    const socket = new net.Socket();
    proxy.ws(req as unknown as IncomingMessage, socket, Buffer.alloc(0), { target: `http://127.0.0.1:${port}` });
    const listeners = request?.listeners('upgrade') ?? [];
    request?.on('error', () => undefined).destroy();
    socket.destroy();
    expect(listeners).to.have.length(1);
  });

  it('undici: its parts by their own paths, its older handlers, and how it reads a connection', async () => {
    serve = (req, res) => {
      req.resume();
      res.end('body');
    };
    const called: string[] = [];
    const connect = buildConnector({ timeout: 0, allowH2: false }) as (...args: unknown[]) => Socket;
    let reads = 0;
    const client = new Client(`http://127.0.0.1:${port}`, {
      connect: (options, callback) => {
        const socket = connect(options, callback);
        const read = socket.read.bind(socket);
        socket.read = (size?: number): unknown => {
          reads += 1;
          return read(size);
        };
      },
    });
    await new Promise<void>((resolve, reject) => {
      const note = (name: string) => {
        called.push(name);
        return true;
      };
      const handlers: Record<string, (...args: never[]) => unknown> = {
        onConnect: () => note('onConnect'),
        onResponseStarted: () => note('onResponseStarted'),
        onHeaders: (status: number, [name]: unknown[]) => note(`onHeaders ${status} ${Buffer.isBuffer(name)}`),
        onData: (bytes: Buffer) => note(`onData ${String(bytes)}`),
        onComplete: () => {
          note('onComplete');
          resolve();
        },
        onError: reject,
      };
      client.dispatch({ method: 'POST', path: '/', body: Buffer.from('hi') }, handlers);
    });
    await client.destroy();
    expect(called).to.deep.equal(['onConnect', 'onResponseStarted', 'onHeaders 200 true', 'onData body', 'onComplete']);
    expect(reads, 'reads with socket.read()').to.be.greaterThan(1);
    for (const name of [
      'InvalidArgumentError',
      'HTTPParserError',
      'HeadersOverflowError',
      'ResponseContentLengthMismatchError',
      'SocketError',
    ] as const)
      expect(undiciErrors[name], name).to.be.a('function');
  });

  it('Sequelize: its transactions, its connections and its errors', async () => {
    const transactions = insidesOf(Transaction.prototype);
    for (const method of ['prepareEnvironment', 'begin', 'cleanup', 'forceCleanup'])
      expect(transactions[method], `Transaction.${method}`).to.be.a('function');
    const managers = {
      sqlite: ['getConnection', 'releaseConnection'],
      postgres: ['getConnection', 'releaseConnection', 'connect', 'disconnect'],
      mysql: ['getConnection', 'releaseConnection', 'connect', 'disconnect'],
    } as const;
    const managerOf = (dialect: keyof typeof managers) =>
      insidesOf(new Sequelize({ dialect, logging: false }).connectionManager);
    for (const dialect of ['sqlite', 'postgres', 'mysql'] as const) {
      for (const method of managers[dialect])
        expect(managerOf(dialect)[method], `${dialect}: ${method}`).to.be.a('function');
    }
    const { Client: PostgresClient } = managerOf('postgres').lib as { Client: new (config: object) => unknown };
    const wire = insidesOf(insidesOf(new PostgresClient({})).connection);
    expect(wire.prependListener, 'pg: client.connection').to.be.a('function');
    expect(wire.stream, 'pg: client.connection.stream').to.be.an('object');
    expect(insidesOf(managerOf('mysql').lib).createConnection, 'mysql: lib.createConnection').to.be.a('function');
    expect(sequelizeErrors.BaseError).to.be.a('function');
    const sequelize = new Sequelize({ dialect: 'sqlite', storage: ':memory:', dialectModule: sqlite3, logging: false });
    await sequelize.query('SELECT 1');
    expect(insidesOf(sequelize.connectionManager).connections, 'sqlite: connections').to.be.an('object');
    await sequelize.close();
  });
});
