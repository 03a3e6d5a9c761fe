/**
 * A process: many concurrent event streams, started one after another so that their pieces do not all arrive at once.
 * `node stream-client.js '{"url": …}'` prints the results as JSON.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from './figures.js';
import { ageMs, DONE } from './piece.js';

export interface StreamOrder {
  url: string;
  headers: Record<string, string>;
  streams: number;
  /** The time over which their starts are spread. */
  spreadMs: number;
  /** The number of pieces of each. */
  pieces: number;
  /** A stream without a piece for this long counts as stalled. */
  stallMs: number;
}

export interface StreamResult {
  /** Streams with all of their pieces and a proper end. */
  complete: number;
  stalled: number;
  /** The highest number at the same time. */
  together: number;
  longestSilenceMs: number;
  /** From the request to the first piece. */
  firstByteMs: { p50: number; p99: number };
  /** From the moment the provider writes a piece to its arrival here. */
  pieceMs: { p50: number; p99: number };
}

const order = JSON.parse(process.argv[2] ?? '') as StreamOrder;
const agent = new Agent({ maxSockets: Infinity });
const firstBytesMs: number[] = [];
const piecesMs: number[] = [];
const silencesMs: number[] = [];
let complete = 0;
let open = 0;
let together = 0;

const running: Promise<void>[] = [];
const begunMs = performance.now();
for (let n = 0; n < order.streams; n++) {
  const dueMs = begunMs + (n * order.spreadMs) / order.streams;
  const waitMs = dueMs - performance.now();
  if (waitMs >= 1) await sleep(waitMs);
  running.push(readStream());
}
await Promise.all(running);

const quantiles = (values: number[]) => ({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) });
const result: StreamResult = {
  complete,
  stalled: silencesMs.filter((silenceMs) => silenceMs >= order.stallMs).length,
  together,
  longestSilenceMs: Math.max(...silencesMs),
  firstByteMs: quantiles(firstBytesMs),
  pieceMs: quantiles(piecesMs),
};
console.log(JSON.stringify(result));
process.exit();

async function readStream(): Promise<void> {
  together = Math.max(together, ++open);
  const startedMs = performance.now();
  let lastMs = startedMs;
  let longestMs = 0;
  let pieces = 0;
  try {
    const response = await answerTo();
    let rest = '';
    response.setEncoding('utf8');
    for await (const text of response) {
      const events = (rest + (text as string)).split('\n\n');
      rest = events.pop() ?? '';
      const nowNs = process.hrtime.bigint();
      const nowMs = performance.now();
      for (const event of events) {
        const age = ageMs(event, nowNs);
        if (age !== null) {
          if (pieces++ === 0) firstBytesMs.push(nowMs - startedMs);
          piecesMs.push(age);
        } else if (`${event}\n\n` === DONE && pieces === order.pieces) {
          complete++;
        }
      }
      longestMs = Math.max(longestMs, nowMs - lastMs);
      lastMs = nowMs;
    }
  } catch {
    // It is not among the complete ones.
  }
  silencesMs.push(Math.max(longestMs, performance.now() - lastMs));
  open--;
}

function answerTo(): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { url, headers, stallMs } = order;
    const asked = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json', ...headers } });
    // A socket without a byte for this long is closed.
    asked.setTimeout(stallMs, () => asked.destroy(new Error('stalled')));
    asked.on('response', (response) => {
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`got status ${response.statusCode}`));
    });
    asked.on('error', reject);
    asked.end('{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Say hello."}]}');
  });
}
