/** The clients of an attack, in a process of their own. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { serve } from './child.js';
import { Flood } from './flood.js';
import type { AttackerPlan, AttackerReport } from './plans.js';

const NICENESS = 10;
// A limit, so that the daemon does not have to accept all of them at once.
const OPENED_AT_ONCE = 20;
const OPEN_EVERY_MS = 5;
// One that came back at once would measure what a connection costs.
const RETURNS_AFTER_MS = 50;

serve(NICENESS, (given: AttackerPlan & { url: string }) => {
  const { url, ...plan } = given;
  const { hostname, port } = new URL(url);
  const { block = '', bytesPerSecond, inSegments, connections } = plan;
  const flood = new Flood({ block, bytesPerSecond, inSegments, sockets: connections });
  const report: AttackerReport = { opened: 0, held: 0, ended: {}, statuses: {}, sentBytes: 0, receivedBytes: 0 };
  const open = new Set<Socket>();
  let begun = 0;
  let requestsLeft = plan.requests ?? Infinity;

  const begin = (number: number) => {
    const head = plan.head.replaceAll('{{n}}', String(number)).replaceAll('{{pair}}', String(Math.floor(number / 2)));
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const isReading = plan.reads === 'all' || (plan.reads !== 'none' && number % 2 === 1);
    let how = 'closed';
    let answer = new AnswerReader();
    report.opened += 1;
    open.add(socket);

    const leave = () => {
      how = 'left';
      socket.destroy();
    };
    const ask = () => {
      if (requestsLeft <= 0) {
        leave();
        return;
      }
      requestsLeft -= 1;
      answer = new AnswerReader();
      socket.write(head, 'latin1');
    };
    socket.once('connect', () => {
      ask();
      if (!plan.upgrades) flood.begin(socket);
    });
    socket.on('data', (piece) => {
      report.receivedBytes += piece.length;
      if (answer.status === null) {
        const status = answer.begin(piece);
        count(report.statuses, status);
        if (plan.upgrades && status === '101') flood.begin(socket);
        if (plan.leavesOnAnswer) leave();
        else if (!isReading) socket.pause();
      } else {
        answer.add(piece);
      }
      if (plan.requests !== undefined && answer.isComplete) ask();
    });
    // A client that upgrades reads until it has its 101.
    if (!isReading && !plan.upgrades) socket.pause();
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      how = code === 'ECONNREFUSED' ? 'refused' : 'reset';
    });
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      open.delete(socket);
      report.sentBytes += socket.bytesWritten;
      count(report.ended, how);
      if (plan.returns) setTimeout(begin, RETURNS_AFTER_MS, number);
    });
  };

  setInterval(() => {
    for (let i = 0; i < OPENED_AT_ONCE && begun < connections; i++) begin(begun++);
  }, OPEN_EVERY_MS);

  return Promise.resolve({
    ready: {},
    report: () => {
      const unfinished = [...open].map(({ bytesWritten, writableLength }) => bytesWritten - writableLength);
      const sentBytes = unfinished.reduce((sum, bytes) => sum + bytes, report.sentBytes);
      return { ...report, held: established(open, Number(port)), sentBytes };
    },
  });
});

/** As much of an answer as is needed to know where it ends. It assumes that its head arrives in one piece. */
class AnswerReader {
  status: string | null = null;
  /** Infinity: the body is chunked. */
  #bytesLeft = 0;
  #isLastChunk = false;

  /** @returns the status. */
  begin(piece: Buffer): string {
    const text = piece.toString('latin1', 0, 8_192);
    const headEnd = text.indexOf('\r\n\r\n') + 4;
    this.status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 'not HTTP';
    this.#bytesLeft = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? Infinity);
    this.add(piece.subarray(headEnd));
    return this.status;
  }

  add(piece: Buffer): void {
    this.#bytesLeft -= piece.length;
    this.#isLastChunk = piece.toString('latin1', Math.max(0, piece.length - 5)) === '0\r\n\r\n';
  }

  get isComplete(): boolean {
    return this.#bytesLeft === Infinity ? this.#isLastChunk : this.#bytesLeft <= 0;
  }
}

function count(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

const ESTABLISHED = '01';

/** Of `0100007F:1F90`. */
const portOf = (address: string) => parseInt(address.slice(-4), 16);

/** How many of the sockets are connected in both directions. One that is not read does not notice that the other side has ended it. */
function established(sockets: ReadonlySet<Socket>, daemonPort: number): number {
  const ports = new Set([...sockets].map(({ localPort }) => localPort));
  const connections = readFileSync('/proc/self/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  return connections.filter(
    ([, local = '', remote = '', state]) =>
      state === ESTABLISHED && portOf(remote) === daemonPort && ports.has(portOf(local)),
  ).length;
}
