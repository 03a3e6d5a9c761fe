/**
 * The part of each limit that belongs to an instance, if instances share only the database: the limit divided by the number of live ones.
 *
 * Parts grow only when the window of the former ones is over, and an instance that does not know for a few seconds who else lives forwards
 * nothing that is limited. An instance that begins, or was taken for dead, waits for as long before it uses its part (`MemoryLimits`). So the
 * sum never exceeds the limit.
 */
import { IN_WINDOW_MS } from './limit-windows.js';
import { type Clock, type Log, type Peers, StoreUnavailable } from './ports.js';

/** In this time an instance knows of another one that begins, or uses no part. */
export const KNOWN_WITHIN_MS = 5_000;

/** The part of each limit that belongs to this process. */
export type LimitShare = (limit: number) => number;

interface Seen {
  /** Number of instances among which a limit is divided. */
  among: number;
  /** Whether this one has the limits that are too small to be divided. */
  isFirst: boolean;
  /** When it was no longer so. */
  untilMs: number;
}

export class LimitShares {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #log: Pick<Log, 'warn'>;
  /** The current state is the last one. */
  #seen: Seen[] = [];
  #seenAtMs = { monotonic: -Infinity, wall: -Infinity };

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, log: Pick<Log, 'warn'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param atMs before the database was asked (monotonic). @param wallMs the same in wall time. */
  observe({ live, isFirst, isLive }: Peers, atMs: number, wallMs: number): void {
    if (!isLive) {
      // Taken for dead. Its heartbeat finds out.
      this.#seenAtMs = { monotonic: -Infinity, wall: -Infinity };
      return;
    }
    this.#seenAtMs = { monotonic: atMs, wall: wallMs };
    const last = this.#seen.at(-1);
    if (last?.among === live && last.isFirst === isFirst) return;
    if (last) last.untilMs = this.#clock.monotonic();
    if (live !== (last?.among ?? 1))
      this.#log.warn('each limit of a token or project is divided among the live instances', { instances: live });
    this.#seen.push({ among: live, isFirst, untilMs: Infinity });
  }

  /** @throws {StoreUnavailable} while it is not known. */
  share(): LimitShare {
    const nowMs = this.#clock.monotonic();
    const age = Math.max(nowMs - this.#seenAtMs.monotonic, this.#clock.now() - this.#seenAtMs.wall);
    if (age > KNOWN_WITHIN_MS) throw new StoreUnavailable('it is not known how many instances share the limits');
    const sinceMs = nowMs - IN_WINDOW_MS - KNOWN_WITHIN_MS;
    if (this.#seen.length > 1) this.#seen = this.#seen.filter(({ untilMs }) => untilMs > sinceMs);
    return this.#least;
  }

  readonly #least: LimitShare = (limit) => Math.min(...this.#seen.map((seen) => partOf(limit, seen)));
}

function partOf(limit: number, { among, isFirst }: Seen): number {
  const part = Math.floor(limit / among);
  return part > 0 ? part : isFirst ? limit : 0;
}
