/**
 * A process: some connections, one request at a time on each. `node exact-client.js '{"url": …}'` prints the times of the requests as JSON.
 *
 * wrk would not do: it adds requests to its percentiles that it would have sent while it waited, as if there were more clients than
 * connections. A pause of one millisecond counts several times.
 */
import { connect } from 'node:net';
import { quantile } from './figures.js';

export interface ExactOrder {
  url: string;
  connections: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  seconds: number;
  /** Seconds before these in which times are not recorded: after a pause, V8 optimizes some functions again. */
  unrecordedSeconds: number;
}

export interface ExactResult {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  p999Ms: number;
  longestMs: number;
}

const order = JSON.parse(process.argv[2] ?? '') as ExactOrder;
const { hostname, port } = new URL(order.url);
const fields = { host: `${hostname}:${port}`, ...order.headers, 'content-length': String(order.body.length) };
const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
const request = `${order.method} ${order.path} HTTP/1.1\r\n${head.join('')}\r\n${order.body}`;

const timesMs: number[] = [];
const begunMs = performance.now();
const recordFromMs = begunMs + order.unrecordedSeconds * 1_000;
const endMs = recordFromMs + order.seconds * 1_000;

for (let connection = 0; connection < order.connections; connection++) open();

function open(): void {
  let received = '';
  let sentMs = 0;
  const socket = connect(Number(port), hostname);
  const send = () => {
    sentMs = performance.now();
    socket.write(request);
  };
  socket.setNoDelay();
  socket.setEncoding('latin1');
  socket.once('connect', send);
  socket.on('data', (text: string) => {
    received += text;
    if (!isComplete(received)) return;
    const nowMs = performance.now();
    if (!received.startsWith('HTTP/1.1 200 ')) fail(received.slice(0, 200));
    received = '';
    if (sentMs >= recordFromMs) timesMs.push(nowMs - sentMs);
    if (nowMs < endMs) send();
    else finish(nowMs);
  });
  for (const end of ['close', 'error']) socket.once(end, () => fail(`a connection ended (${end})`));
}

function isComplete(response: string): boolean {
  const end = response.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(response.slice(0, end + 2))?.[1];
  return length === undefined ? response.endsWith('\r\n0\r\n\r\n') : response.length >= end + 4 + Number(length);
}

function finish(nowMs: number): never {
  const result: ExactResult = {
    requests: timesMs.length,
    seconds: (nowMs - recordFromMs) / 1_000,
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
    p999Ms: quantile(timesMs, 0.999),
    longestMs: quantile(timesMs, 1),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
  process.exit();
}

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}
