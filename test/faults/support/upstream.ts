/** An upstream that follows a script, byte for byte, and keeps every byte that it received. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Certificate } from '../../support/certificates.js';
import { eventually } from '../../support/eventually.js';
import { type Message, NotHttp, readMessage, valuesOf } from './wire.js';

// How much of a response is kept. A longer one is compared up to here.
const MOST_KEPT = 1024 * 1024;
const PIECE = Buffer.alloc(64 * 1024, 'x');

/** Called when the head of a request has arrived. */
export type Script = (exchange: Exchange) => void | Promise<void>;

/** One request at the upstream, and the response that the script gives to it. */
export class Exchange {
  readonly socket: Socket;
  /** Whether the connection carried an earlier request. */
  readonly isReused: boolean;
  readonly connection: number;
  #request!: Message;
  #onWhole!: () => void;
  readonly #whole = new Promise<void>((resolve) => {
    this.#onWhole = resolve;
  });
  /** The bytes of the request, as far as they have arrived. */
  bytes: Buffer = Buffer.alloc(0);
  #sent: Buffer[] = [];
  /** The number of bytes of a response that were written to the socket. */
  sentBytes = 0;
  /** Whether the script closed the connection in an orderly way. */
  isFinished = false;
  isSwitched = false;
  /** What has arrived after that. */
  tunnelled: Buffer = Buffer.alloc(0);

  constructor(request: Message, bytes: Buffer, socket: Socket, isReused: boolean, connection: number) {
    this.socket = socket;
    this.isReused = isReused;
    this.connection = connection;
    this.update(request, bytes);
  }

  update(request: Message, bytes: Buffer): void {
    this.#request = request;
    this.bytes = bytes.subarray(0, request.end);
    if (request.isComplete) this.#onWhole();
  }

  get request(): Message {
    return this.#request;
  }

  get method(): string {
    return this.request.startLine.split(' ')[0] ?? '';
  }

  get target(): string {
    return this.request.startLine.split(' ')[1] ?? '';
  }

  get requestId(): string {
    return this.all('x-request-id').join();
  }

  get isClosed(): boolean {
    return this.socket.destroyed;
  }

  all(name: string): string[] {
    return valuesOf(this.request, name);
  }

  /** What was sent of the response, up to a limit. */
  get sent(): Buffer {
    return Buffer.concat(this.#sent);
  }

  get isSentComplete(): boolean {
    return this.sentBytes <= MOST_KEPT;
  }

  /** Waits for the whole request; never resolves if its connection closes before. */
  whole(): Promise<void> {
    return this.#whole;
  }

  /** Waits until the other side has closed the connection. */
  closed(withinMs?: number): Promise<void> {
    return eventually('the upstream connection is closed', () => this.isClosed, withinMs);
  }

  /** @returns false when the socket is full. */
  send(bytes: string | Buffer): boolean {
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    this.sentBytes += buffer.length;
    if (this.sentBytes <= MOST_KEPT) this.#sent.push(buffer);
    return this.socket.write(buffer);
  }

  /** Sends `bytes` more, as fast as they are read, until they are sent or the connection is closed. */
  async pump(bytes: number): Promise<void> {
    const gone = new AbortController();
    this.socket.once('close', () => {
      gone.abort();
    });
    for (let rest = bytes; rest > 0 && !this.isClosed; rest -= PIECE.length) {
      const isTaken = this.send(PIECE.subarray(0, rest));
      if (!isTaken) await once(this.socket, 'drain', { signal: gone.signal }).catch(() => undefined);
    }
  }

  /** Sends a complete response with a length. */
  respond(status = 200, fields = '', body = '{"ok":true}'): void {
    const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    this.send(
      Buffer.from(`HTTP/1.1 ${status} Status\r\nContent-Type: application/json\r\n${length}${fields}\r\n${body}`),
    );
  }

  /** Accepts an upgrade: what follows is not HTTP, on either side. */
  switchProtocols(fields = '', protocol = 'websocket'): void {
    this.isSwitched = true;
    this.send(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${fields}\r\n`);
  }

  fin(): void {
    this.isFinished = true;
    this.socket.end();
  }

  rst(): void {
    this.socket.resetAndDestroy();
  }
}

export class ScriptedUpstream {
  readonly #certificate: Certificate | undefined;
  url = '';
  script: Script = AS_A_PROVIDER;
  exchanges: Exchange[] = [];
  /** Bytes that no upstream should ever receive. */
  violations: string[] = [];
  /** All received bytes, by connection. */
  received: Buffer[] = [];
  readonly sockets = new Set<Socket>();
  readonly #servers: Server[] = [];
  /** With TLS, those of `sockets` that are not yet (or never become) TLS connections. */
  readonly #underneath = new Set<Socket>();

  /** @param certificate makes it use TLS. */
  constructor(certificate?: Certificate) {
    this.#certificate = certificate;
  }

  /** Listens at one more address. */
  async listen(port = 0, host = '127.0.0.1'): Promise<this> {
    const serve = (socket: Socket) => {
      this.#serve(socket);
    };
    const options = { noDelay: true, allowHalfOpen: true };
    const server = this.#certificate
      ? createTlsServer({ ...options, ...this.#certificate }, serve)
      : createServer(options, serve);
    server.on('connection', (socket: Socket) => {
      this.#underneath.add(socket);
      socket.on('close', () => this.#underneath.delete(socket));
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
    this.#servers.push(server);
    this.url = `${this.#certificate ? 'https' : 'http'}://${host}:${(server.address() as AddressInfo).port}`;
    return this;
  }

  /** Runs before each case, which begins without a connection. */
  async begin(): Promise<void> {
    for (const socket of this.sockets) socket.end();
    await eventually("the previous case's connections are gone", () => this.sockets.size === 0);
    this.script = AS_A_PROVIDER;
    this.exchanges = [];
    this.violations = [];
    this.received = [];
  }

  /** The only request, once it has arrived. */
  async only(): Promise<Exchange> {
    await eventually('a request has reached the upstream', () => this.exchanges.length > 0);
    if (this.exchanges.length > 1) throw new Error(`${this.exchanges.length} requests at the upstream`);
    return this.exchanges[0]!;
  }

  async stop(): Promise<void> {
    for (const socket of this.#underneath) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }

  #serve(socket: Socket): void {
    const connection = this.received.push(Buffer.alloc(0)) - 1;
    let bytes: Buffer = Buffer.alloc(0);
    let current: Exchange | null = null;
    let served = 0;
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('end', () => {
      if (!socket.writableEnded) socket.end();
    });
    socket.on('close', () => this.sockets.delete(socket));
    const read = () => {
      while (bytes.length > 0) {
        const tunnel = this.exchanges.findLast((exchange) => exchange.socket === socket);
        if (tunnel?.isSwitched) {
          tunnel.tunnelled = Buffer.concat([tunnel.tunnelled, bytes]);
          bytes = Buffer.alloc(0);
          return;
        }
        const request = readMessage(bytes, 0, 'request', () => false);
        if (!request) return;
        if (current) {
          current.update(request, bytes);
        } else {
          current = new Exchange(request, bytes, socket, served > 0, connection);
          const before = this.exchanges.findLast((exchange) => exchange.socket === socket);
          if (before && before.sentBytes === 0)
            this.violations.push('a second request before the first had its response');
          served += 1;
          this.exchanges.push(current);
          void this.script(current);
        }
        if (!request.isComplete) return;
        bytes = bytes.subarray(request.end);
        current = null;
      }
    };
    socket.on('data', (piece: Buffer) => {
      this.received[connection] = Buffer.concat([this.received[connection] ?? Buffer.alloc(0), piece]);
      bytes = Buffer.concat([bytes, piece]);
      try {
        read();
      } catch (error) {
        if (!(error instanceof NotHttp)) throw error;
        this.violations.push(error.message);
        bytes = Buffer.alloc(0);
        socket.destroy();
      }
    });
  }
}

const AS_A_PROVIDER: Script = async (exchange) => {
  await exchange.whole();
  exchange.respond();
};
