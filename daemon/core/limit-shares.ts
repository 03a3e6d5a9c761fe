/**
 * The part of each limit that belongs to an instance, if instances share only the database: the limit divided by the number of live ones. Those
 * that reach Redis count together, and have what the others do not.
 *
 * Parts grow only when the window of the former ones is over, and an instance that does not know for a few seconds who else lives forwards
 * nothing that is limited. An instance that begins, or was taken for dead, waits for as long before it uses its part (`MemoryLimits`). So the
 * sum never exceeds the limit.
 */
import { IN_WINDOW_MS } from './limit-windows.js';
import { type Clock, type Log, type Peers, StoreUnavailable } from './ports.js';

/** In this time an instance knows of another one that begins, or uses no part. */
export const KNOWN_WITHIN_MS = 5_000;

/**
 * Those that reach Redis go on for so long without knowing, so that they serve while the database is unavailable for a moment. One that
 * loses Redis waits for it before it uses its part.
 */
export const KNOWN_IN_REDIS_WITHIN_MS = 30_000;

/** The part of each limit that belongs to this process. */
export type LimitShare = (limit: number) => number;

interface Seen {
  /** Number of instances among which a limit is divided. */
  among: number;
  /** Whether this one has the limits that are too small to be divided. */
  isFirst: boolean;
  /** Number of others that count apart from Redis, or did so a moment ago. */
  apart: number;
  /** Whether one of these has such limits. */
  isFirstApart: boolean;
  /** When it was no longer so. */
  untilMs: number;
}

export class LimitShares {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #log: Pick<Log, 'warn'>;
  /** The current state is the last one. */
  #seen: Seen[] = [];
  #seenAtMs = { monotonic: -Infinity, wall: -Infinity };

  /** Whether this instance has only its part: always without Redis. */
  isDivided: boolean;

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, log: Pick<Log, 'warn'>, isDivided = true) {
    this.#clock = clock;
    this.#log = log;
    this.isDivided = isDivided;
  }

  /** Number of live ones; null while it is not known. */
  get instances(): number | null {
    return this.#ageMs > KNOWN_IN_REDIS_WITHIN_MS ? null : (this.#seen.at(-1)?.among ?? null);
  }

  /** Number of other live ones that count apart from Redis, as last seen. */
  get apart(): number {
    return this.#seen.at(-1)?.apart ?? 0;
  }

  /** @param atMs before the database was asked (monotonic). @param wallMs the same in wall time. */
  observe({ live, isFirst, isLive, apart, isFirstApart }: Peers, atMs: number, wallMs: number): void {
    if (!isLive) {
      // Taken for dead. Its heartbeat finds out.
      this.#seenAtMs = { monotonic: -Infinity, wall: -Infinity };
      return;
    }
    this.#seenAtMs = { monotonic: atMs, wall: wallMs };
    const last = this.#seen.at(-1);
    if (last?.among === live && last.isFirst === isFirst && last.apart === apart && last.isFirstApart === isFirstApart)
      return;
    if (last) last.untilMs = this.#clock.monotonic();
    if (this.isDivided && live !== (last?.among ?? 1))
      this.#log.warn('each limit of a token or project is divided among the live instances', { instances: live });
    this.#seen.push({ among: live, isFirst, apart, isFirstApart, untilMs: Infinity });
  }

  /** @throws {StoreUnavailable} while it is not known. */
  share(): LimitShare {
    this.#checkKnown(KNOWN_WITHIN_MS);
    return this.#least;
  }

  /** The part of those that count together in Redis. @throws {StoreUnavailable} while it is not known. */
  shareInRedis(): LimitShare {
    this.#checkKnown(KNOWN_IN_REDIS_WITHIN_MS);
    return this.#leastInRedis;
  }

  get #ageMs(): number {
    const { monotonic, wall } = this.#seenAtMs;
    return Math.max(this.#clock.monotonic() - monotonic, this.#clock.now() - wall);
  }

  #checkKnown(withinMs: number): void {
    if (this.#ageMs > withinMs) throw new StoreUnavailable('it is not known how many instances share the limits');
    const sinceMs = this.#clock.monotonic() - IN_WINDOW_MS - KNOWN_WITHIN_MS;
    if (this.#seen.length > 1) this.#seen = this.#seen.filter(({ untilMs }) => untilMs > sinceMs);
  }

  readonly #least: LimitShare = (limit) => Math.min(...this.#seen.map((seen) => partOf(limit, seen)));

  readonly #leastInRedis: LimitShare = (limit) => Math.min(...this.#seen.map((seen) => partInRedis(limit, seen)));
}

function partInRedis(limit: number, { among, apart, isFirstApart }: Seen): number {
  const part = Math.floor(limit / among);
  return part > 0 ? Math.max(0, limit - apart * part) : isFirstApart ? 0 : limit;
}

function partOf(limit: number, { among, isFirst }: Seen): number {
  const part = Math.floor(limit / among);
  return part > 0 ? part : isFirst ? limit : 0;
}
