/**
 * A process: one connection, one request at a time. `node single-client.js '{"url": …}'` prints the times of the requests as JSON.
 *
 * wrk would not do: it adds requests to its percentiles that it would have sent while it waited, as if there were more than one client.
 */
import { connect } from 'node:net';
import { quantile } from './figures.js';

export interface SingleOrder {
  url: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  seconds: number;
}

export interface SingleResult {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  p999Ms: number;
  longestMs: number;
}

const order = JSON.parse(process.argv[2] ?? '') as SingleOrder;
const { hostname, port } = new URL(order.url);
const fields = { host: `${hostname}:${port}`, ...order.headers, 'content-length': String(order.body.length) };
const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
const request = `${order.method} ${order.path} HTTP/1.1\r\n${head.join('')}\r\n${order.body}`;

const timesMs: number[] = [];
let received = '';
let begunMs = 0;
let sentMs = 0;

const socket = connect(Number(port), hostname);
socket.setNoDelay();
socket.setEncoding('latin1');
socket.once('connect', () => {
  begunMs = performance.now();
  send();
});
socket.on('data', (text: string) => {
  received += text;
  if (!isComplete(received)) return;
  const nowMs = performance.now();
  if (!received.startsWith('HTTP/1.1 200 ')) fail(received.slice(0, 200));
  received = '';
  timesMs.push(nowMs - sentMs);
  if (nowMs - begunMs < order.seconds * 1_000) send();
  else finish(nowMs);
});
for (const end of ['close', 'error']) socket.once(end, () => fail(`the connection ended (${end})`));

function send(): void {
  sentMs = performance.now();
  socket.write(request);
}

function isComplete(response: string): boolean {
  const end = response.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(response.slice(0, end + 2))?.[1];
  return length === undefined ? response.endsWith('\r\n0\r\n\r\n') : response.length >= end + 4 + Number(length);
}

function finish(nowMs: number): never {
  const result: SingleResult = {
    requests: timesMs.length,
    seconds: (nowMs - begunMs) / 1_000,
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
