/** The hostile side of an attack, in a separate process: it opens its connections, sends what it is told to, and holds them. */
import { connect, type Socket } from 'node:net';
import { setPriority } from 'node:os';

/** What every connection of an attack does. */
export interface AttackPlan {
  connections: number;
  /** Written in this order, with pauses. `{{n}}` is replaced by the number of the connection. */
  pieces: readonly string[];
  /** The pause between two pieces. */
  pauseMs?: number;
  /** How often the last piece is written in all, as far as the daemon reads it. Default: 1. */
  times?: number;
  /** Whether it reads its responses. */
  reads?: boolean;
  /** Whether it connects again when its connection closes. */
  returns?: boolean;
}

/** A report to the parent process, once a second and at the end. */
export interface HostileReport {
  open: number;
  opened: number;
  /** Connections that the daemon closed or did not accept. */
  ended: number;
  sentMb: number;
}

// A limit, so that the daemon does not have to accept a thousand at once.
const OPENED_AT_ONCE = 100;
const OPEN_EVERY_MS = 5;
const COMES_BACK_AFTER_MS = 50;
const REPORT_EVERY_MS = 250;
const WRITTEN_AT_ONCE = 64 * 1024;

function attack(url: string, hostility: AttackPlan): void {
  const { hostname, port } = new URL(url);
  const { pieces, pauseMs = 0, times = 1, reads = false, returns = false } = hostility;
  const report: HostileReport = { open: 0, opened: 0, ended: 0, sentMb: 0 };
  let missing = hostility.connections;

  const send = (socket: Socket, number: number) => {
    const texts = pieces.map((piece) => Buffer.from(piece.replaceAll('{{n}}', String(number)), 'latin1'));
    const last = texts.at(-1) ?? Buffer.alloc(0);
    const together = Math.max(1, Math.min(times, Math.floor(WRITTEN_AT_ONCE / Math.max(1, last.length))));
    const many = Buffer.concat(Array.from({ length: together }, () => last));
    let left = times;
    const repeat = () => {
      while (left > 0 && !socket.destroyed) {
        const count = Math.min(left, together);
        left -= count;
        if (!socket.write(count === together ? many : many.subarray(0, count * last.length))) {
          socket.once('drain', repeat);
          return;
        }
      }
    };
    const next = (index: number) => {
      if (socket.destroyed) return;
      if (index >= texts.length - 1) {
        repeat();
        return;
      }
      socket.write(texts[index] ?? '');
      // Spread, so that they do not all happen at the same moment.
      setTimeout(next, pauseMs * (0.5 + Math.random()), index + 1);
    };
    next(0);
  };

  const open = (number: number) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    report.open += 1;
    report.opened += 1;
    if (reads) socket.resume();
    else socket.pause();
    socket.on('error', () => undefined);
    // A connection that is not read does not see its end; its writes fail then.
    socket.on('connect', () => {
      send(socket, number);
    });
    socket.on('close', () => {
      report.open -= 1;
      report.ended += 1;
      report.sentMb += socket.bytesWritten / 1e6;
      if (returns) setTimeout(() => (missing += 1), COMES_BACK_AFTER_MS);
    });
  };

  setInterval(() => {
    for (let i = 0; i < OPENED_AT_ONCE && missing > 0; i++) {
      missing -= 1;
      open(report.opened);
    }
  }, OPEN_EVERY_MS);
  setInterval(() => process.send?.(report, () => undefined), REPORT_EVERY_MS);
}

if (process.send) {
  // The attacker's own CPU use should affect the measurement as little as possible.
  setPriority(10);
  process.once('message', ({ url, hostility }: { url: string; hostility: AttackPlan }) => {
    attack(url, hostility);
  });
  process.on('disconnect', () => process.exit());
}
