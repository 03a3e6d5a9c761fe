/** Both ends of a connection byte for byte. HTTP clients and servers normalise exactly what some tests are about. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';

/** A response, byte for byte. */
export class RawResponse {
  readonly status: number;
  /** Names and values in their order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;

  constructor(status: number, fields: readonly (readonly [name: string, value: string])[], body: Buffer) {
    this.status = status;
    this.fields = fields;
    this.body = body;
  }

  /** Every value of a header. */
  all(name: string): string[] {
    return this.fields.filter(([given]) => given.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  }

  /** The value of a header that appears once; undefined if it is absent. */
  header(name: string): string | undefined {
    const values = this.all(name);
    if (values.length > 1) throw new Error(`${name} appears ${values.length} times: ${values.join(' | ')}`);
    return values[0];
  }

  get text(): string {
    return this.body.toString();
  }

  get json(): Record<string, unknown> {
    return JSON.parse(this.text) as Record<string, unknown>;
  }
}

/** Bytes that arrive in pieces, with space for more: a copy of all of them for each piece would make large responses slow. */
export class GrowingBuffer {
  #space = Buffer.alloc(0);
  #begin = 0;
  #end = 0;

  get bytes(): Buffer {
    return this.#space.subarray(this.#begin, this.#end);
  }

  append(piece: Buffer): void {
    if (this.#end + piece.length > this.#space.length) {
      const { bytes } = this;
      this.#space = Buffer.alloc(2 * (bytes.length + piece.length));
      [this.#begin, this.#end] = [0, bytes.copy(this.#space)];
    }
    this.#end += piece.copy(this.#space, this.#end);
  }

  skip(count: number): void {
    this.#begin += count;
  }
}

/** A client that sends exactly the given bytes. */
export class RawClient {
  readonly socket: Socket;
  isClosed = false;
  /** The connection was reset instead of closed. */
  wasReset = false;
  readonly closed: Promise<void>;
  readonly #arrived = new GrowingBuffer();
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (piece: Buffer) => {
      this.#arrived.append(piece);
      this.#wake();
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      this.wasReset = code === 'ECONNRESET'; // `close` follows.
    });
    socket.on('end', () => socket.end());
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.isClosed = true;
        this.#wake();
        resolve();
      });
    });
  }

  /** @param localAddress the source address, such as any of 127.0.0.0/8. */
  static async to(url: string, localAddress?: string): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, localAddress });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawClient(socket);
  }

  /** What has arrived and was not yet read as a response. */
  get pending(): Buffer {
    return this.#arrived.bytes;
  }

  /** Passes over the first `count` of the pending bytes. */
  skip(count = this.pending.length): void {
    this.#arrived.skip(count);
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Waits until these bytes have arrived. */
  async seen(bytes: string | Buffer): Promise<void> {
    while (!this.pending.includes(bytes)) await this.#more();
  }

  /**
   * The next complete response.
   * @param method of its request: a response to HEAD has no body, whatever it says. @throws if the connection closes first.
   */
  async response(method = 'GET'): Promise<RawResponse> {
    for (;;) {
      const parsed = parse(this.pending, method, this.isClosed);
      if (parsed) {
        this.skip(parsed.length);
        return parsed.answer;
      }
      await this.#more();
    }
  }

  /** From now on data is read and only counted, by `socket.bytesRead`, because keeping much of it would be slow. */
  discard(): void {
    this.socket.removeAllListeners('data').resume();
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #more(): Promise<void> {
    if (this.isClosed)
      throw new Error(`the connection closed; pending: ${JSON.stringify(this.pending.toString('latin1'))}`);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** @returns undefined while it is incomplete. */
export function parse(
  bytes: Buffer,
  method: string,
  isClosed: boolean,
): { answer: RawResponse; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1] ?? NaN);
  if (Number.isNaN(status)) throw new Error(`not a status line: ${statusLine}`);
  const fields = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const start = headEnd + 4;
  const found = bodyOf(bytes, start, new RawResponse(status, fields, Buffer.alloc(0)), method, isClosed);
  return found && { answer: new RawResponse(status, fields, found.body), length: found.end };
}

function bodyOf(
  bytes: Buffer,
  start: number,
  head: RawResponse,
  method: string,
  isClosed: boolean,
): { body: Buffer; end: number } | undefined {
  const declared = head.header('content-length');
  if (method === 'HEAD' || head.status < 200 || head.status === 204 || head.status === 304) {
    return { body: Buffer.alloc(0), end: start };
  }
  if (head.header('transfer-encoding') !== undefined) return chunked(bytes, start);
  if (declared === undefined) return isClosed ? { body: bytes.subarray(start), end: bytes.length } : undefined;
  const end = start + Number(declared);
  return bytes.length >= end ? { body: bytes.subarray(start, end), end } : undefined;
}

function chunked(bytes: Buffer, start: number): { body: Buffer; end: number } | undefined {
  const pieces: Buffer[] = [];
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
    const end = lineEnd + 2 + size + 2;
    if (bytes.length < end) return undefined;
    if (size === 0) return { body: Buffer.concat(pieces), end };
    pieces.push(bytes.subarray(lineEnd + 2, end - 2));
    at = end;
  }
}

export type Fields = Readonly<Record<string, string | readonly string[]>>;

/** The headers of the handshake of a WebSocket. */
export const WEBSOCKET: Fields = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
};

/** The head of a request, with a Host and the secret unless `fields` has its own. A field with an empty array is left out. */
export function head(start: string, secret: string | null, fields: Fields = {}): string {
  const all: Fields = { Host: 'llmp.test', ...(secret !== null && { Authorization: `Bearer ${secret}` }), ...fields };
  const lines = Object.entries(all).flatMap(([name, values]) =>
    (typeof values === 'string' ? [values] : values).map((value) => `${name}: ${value}\r\n`),
  );
  return `${start} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

export const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
export const LAST_CHUNK = '0\r\n\r\n';

/** Sends `bytes` on a new connection and returns the response. */
export async function ask(url: string, bytes: string | Buffer, method?: string): Promise<RawResponse> {
  const client = await RawClient.to(url);
  try {
    client.send(bytes);
    return await client.response(method);
  } finally {
    client.destroy();
  }
}

/** A provider that sends any bytes, HTTP or not. */
export interface RawProvider {
  url: string;
  server: Server;
  /** Connections that have brought a request. */
  requests: number;
  /** Connections that are open. */
  readonly connections: number;
  stop(): Promise<void>;
}

/** @param answer called for each piece of a request that arrives, which is the whole of a small request. */
export async function startRawProvider(answer: (socket: Socket) => void): Promise<RawProvider> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', () => {
      provider.requests += 1;
      answer(socket);
    });
  });
  const provider: RawProvider = {
    url: '',
    server,
    requests: 0,
    get connections() {
      return sockets.size;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return provider;
}
