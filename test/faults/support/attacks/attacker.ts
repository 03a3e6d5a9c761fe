/** The clients of an attack, in a process of their own. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { serve } from './child.js';
import type { AttackerPlan, AttackerReport } from './plans.js';

const NICENESS = 10;
// A limit, so that the daemon does not have to accept all of them at once.
const OPENED_AT_ONCE = 20;
const OPEN_EVERY_MS = 5;
// One that came back at once would measure what a connection costs.
const RETURNS_AFTER_MS = 50;
/** Segments of one byte that all connections together send each millisecond: each costs this process as much as the daemon. */
const SEGMENTS_PER_MS = 20;

/** How many of the sockets are connected in both directions. One that is not read does not notice that the other side has ended it. */
function established(sockets: ReadonlySet<Socket>, daemonPort: number): number {
  const ports = new Set([...sockets].map(({ localPort }) => localPort));
  return readFileSync('/proc/self/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, local = '', remote = '', state]) =>
        state === ESTABLISHED && portOf(remote) === daemonPort && ports.has(portOf(local)),
    ).length;
}

const ESTABLISHED = '01';
/** Of `0100007F:1F90`. */
const portOf = (address: string) => parseInt(address.slice(-4), 16);

serve(NICENESS, (given: AttackerPlan & { url: string }) => {
  const { url, ...plan } = given;
  const { hostname, port } = new URL(url);
  const block = Buffer.from(plan.block ?? '', 'latin1');
  const report: AttackerReport = { opened: 0, held: 0, ended: {}, statuses: {}, sentBytes: 0, receivedBytes: 0 };
  const count = (counts: Record<string, number>, key: string) => {
    counts[key] = (counts[key] ?? 0) + 1;
  };
  const open = new Set<Socket>();
  const inSegments = new Set<Socket>();
  /** Where each socket goes on in the block. */
  const limited = new Map<Socket, number>();
  let begun = 0;
  let requestsLeft = plan.requests ?? Infinity;

  const flood = (socket: Socket) => {
    if (block.length === 0) return;
    if (plan.inSegments) {
      inSegments.add(socket);
      return;
    }
    if (plan.bytesPerSecond !== undefined) {
      limited.set(socket, 0);
      return;
    }
    while (!socket.destroyed && socket.writable) {
      if (!socket.write(block)) {
        socket.once('drain', () => {
          flood(socket);
        });
        return;
      }
    }
  };

  const begin = (number: number) => {
    const head = plan.head
      .replaceAll('{{n}}', String(number))
      .replaceAll('{{pair}}', String(Math.floor(number / 2)))
      .replaceAll('{{url}}', url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const isReading = plan.reads === 'all' || (plan.reads !== 'none' && number % 2 === 1);
    report.opened += 1;
    open.add(socket);
    let how = 'closed';
    const ask = () => {
      if (requestsLeft <= 0) {
        how = 'left';
        socket.destroy();
        return;
      }
      requestsLeft -= 1;
      socket.write(head, 'latin1');
    };
    socket.once('connect', () => {
      ask();
      if (!plan.upgrades) flood(socket);
    });
    let isAnswered = false;
    socket.on('data', (piece) => {
      report.receivedBytes += piece.length;
      if (!isAnswered) {
        isAnswered = true;
        const status = /^HTTP\/1\.1 (\d{3})/.exec(piece.toString('latin1', 0, 12))?.[1] ?? 'not HTTP';
        count(report.statuses, status);
        if (plan.upgrades && status === '101') flood(socket);
        if (plan.leavesOnAnswer) {
          how = 'left';
          socket.destroy();
          return;
        }
        if (!isReading) socket.pause();
      }
      if (plan.answerEndsWith !== undefined && piece.toString('latin1').endsWith(plan.answerEndsWith)) {
        isAnswered = false;
        ask();
      }
    });
    // A client that upgrades reads until it has its 101.
    if (!isReading && !plan.upgrades) socket.pause();
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      how = code === 'ECONNREFUSED' ? 'refused' : 'reset';
    });
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      inSegments.delete(socket);
      limited.delete(socket);
      open.delete(socket);
      report.sentBytes += socket.bytesWritten;
      count(report.ended, how);
      if (plan.returns) setTimeout(begin, RETURNS_AFTER_MS, number);
    });
  };

  setInterval(() => {
    for (let i = 0; i < OPENED_AT_ONCE && begun < plan.connections; i++) begin(begun++);
  }, OPEN_EVERY_MS);

  if (plan.inSegments) {
    let at = 0;
    setInterval(() => {
      const sockets = [...inSegments];
      for (let i = 0; i < SEGMENTS_PER_MS && sockets.length > 0; i++) {
        const socket = sockets[i % sockets.length];
        if (socket?.writableLength === 0) socket.write(block.subarray(at, at + 1));
        at = (at + 1) % block.length;
      }
    }, 1);
  }
  if (plan.bytesPerSecond !== undefined) {
    // Not more writes than this process can make beside the daemon.
    const everyMs = Math.max(10, plan.connections / 5);
    const some = Buffer.concat(
      Array.from({ length: 1 + Math.ceil((plan.bytesPerSecond * everyMs) / 1_000 / block.length) }, () => block),
    );
    let lastMs = performance.now();
    setInterval(() => {
      const nowMs = performance.now();
      const share = Math.min(
        some.length - block.length,
        Math.floor(((plan.bytesPerSecond ?? 0) * (nowMs - lastMs)) / 1_000),
      );
      lastMs = nowMs;
      for (const [socket, at] of limited) {
        if (socket.writableLength > 0 || !socket.writable) continue;
        socket.write(some.subarray(at, at + share));
        limited.set(socket, (at + share) % block.length);
      }
    }, everyMs);
  }
  return Promise.resolve({
    ready: {},
    report: () => {
      const unfinished = [...open].reduce(
        (sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength,
        0,
      );
      return { ...report, held: established(open, Number(port)), sentBytes: report.sentBytes + unfinished };
    },
  });
});
