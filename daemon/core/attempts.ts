/**
 * Wrong management credentials, at one of the doors that they open. Two things are bounded here: how fast one address may guess, and what
 * guessing costs us. The right token is never held up: behind a proxy everybody is one address.
 *
 * **Slowed down.** Ten attempts in any minute are answered as wrong, further ones as too many.
 *
 * **Audited.** Those ten have a record each; the others are counted, and once a minute one record an address says how
 * many they were. Records are written behind the answer, together in one transaction at a time, so that a flood keeps
 * neither its senders waiting nor the database busy. While that is away they wait, as far as there is room.
 *
 * **Bounded.** An IPv6 network of 64 bits is one address, for its user can choose among 2^64. Beyond
 * `MOST_ADDRESSES` all others are one, and beyond `MOST_SINGLE_RECORDS` even first attempts are only counted: at its
 * worst a minute costs the sum of both in rows.
 */
import { networkOf } from './address.js';
import { auditRecord, type AuditRecord, type Caller } from './audit.js';
import type { Clock, Log, RecordStore } from './ports.js';
import { logInRefused, managementTokenRefused, Refusal } from './refusal.js';
import { SingleRun } from './single-run.js';

const WINDOW_MS = 60_000;
const MOST_ANSWERED = 10;
const MOST_ADDRESSES = 256;
const MOST_SINGLE_RECORDS = 100;
const MOST_WAITING = 1_000;

interface Address {
  /** For the record; null where there is none, or too many. */
  name: string | null;
  /** When the attempts of the last minute that were answered as wrong came, the oldest first. At most ten. */
  answeredAtMs: number[];
  /** Attempts that no record tells of yet. */
  untold: number;
}

/** Where the management token is asked for. Each has its own count, so that nobody is kept from one by what came to the other. */
export interface Door extends Pick<AuditRecord, 'action'>, Pick<Caller, 'actor'> {
  /** The answer to one that is wrong. */
  refusal: () => Refusal;
}

export const MANAGEMENT_API: Door = {
  action: 'management.denied',
  actor: 'management',
  refusal: managementTokenRefused,
};
export const ADMIN_UI: Door = { action: 'admin.login', actor: 'admin', refusal: logInRefused };

export interface WrongAttemptsOptions {
  door: Door;
  store: Pick<RecordStore, 'change'>;
  clock: Clock;
  log: Log;
}

export class WrongAttempts {
  readonly #options: WrongAttemptsOptions;
  readonly #addresses = new Map<string, Address>();
  #singleRecords = 0;
  #cancelSweep: (() => void) | null = null;
  #waiting: AuditRecord[] = [];
  readonly #writing = new SingleRun();

  constructor(options: WrongAttemptsOptions) {
    this.#options = options;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#addresses.size;
  }

  /**
   * Takes note of a wrong credential, which itself it never sees.
   *
   * @param ip null on a unix socket.
   * @returns what to answer.
   */
  refuse(ip: string | null, requestId: string | null): Refusal {
    const now = this.#options.clock.monotonic();
    const address = this.#addressOf(ip);
    address.answeredAtMs = address.answeredAtMs.filter((atMs) => atMs > now - WINDOW_MS);
    this.#sweepLater();

    const [oldest] = address.answeredAtMs;
    if (oldest !== undefined && address.answeredAtMs.length >= MOST_ANSWERED) {
      address.untold++;
      const retryAfterSeconds = Math.ceil((oldest + WINDOW_MS - now) / 1000);
      return new Refusal('too_many_attempts', 'too many wrong management tokens', { retryAfterSeconds });
    }
    address.answeredAtMs.push(now);
    if (this.#singleRecords < MOST_SINGLE_RECORDS) {
      this.#singleRecords++;
      this.#record(ip, requestId, null);
      this.#write();
    } else {
      address.untold++;
    }
    return this.#options.door.refusal();
  }

  /** At shutdown: writes what is not written yet. */
  async close(): Promise<void> {
    this.#tell();
    this.#write();
    await this.#writing.current;
    this.#cancelSweep?.();
  }

  #addressOf(ip: string | null): Address {
    const network = ip === null ? '' : networkOf(ip);
    const known = this.#addresses.get(network);
    if (known) return known;
    const isRoom = this.#addresses.size < MOST_ADDRESSES;
    const key = isRoom ? network : 'others';
    const address = this.#addresses.get(key) ?? { name: isRoom ? network || null : null, answeredAtMs: [], untold: 0 };
    this.#addresses.set(key, address);
    return address;
  }

  /** One timer, and none while there is nothing to remember or to write. */
  #sweepLater(): void {
    this.#cancelSweep ??= this.#options.clock.after(WINDOW_MS, () => {
      this.#cancelSweep = null;
      this.#singleRecords = 0;
      this.#tell();
      this.#write();
      const since = this.#options.clock.monotonic() - WINDOW_MS;
      for (const [key, { answeredAtMs }] of this.#addresses) {
        if ((answeredAtMs.at(-1) ?? since) <= since) this.#addresses.delete(key);
      }
      if (this.#addresses.size > 0) this.#sweepLater();
    });
  }

  /** Makes a record an address of all that are only counted so far. */
  #tell(): void {
    for (const address of this.#addresses.values()) {
      if (address.untold > 0) this.#record(address.name, null, address.untold);
      address.untold = 0;
    }
  }

  #record(clientIp: string | null, requestId: string | null, count: number | null): void {
    const { door, clock } = this.#options;
    const caller = { actor: door.actor, requestId, clientIp, reason: null };
    this.#waiting.push(auditRecord({ action: door.action, count }, caller, 'denied', clock.now()));
  }

  /** Nobody waits for it, and an error is nobody's but the log's. */
  #write(): void {
    void this.#writing.run(() => this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    const { store, log } = this.#options;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await store.change(async (tx) => {
          for (const record of batch) await tx.record(record);
        });
      } catch (error) {
        const all = [...batch, ...this.#waiting];
        this.#waiting = all.slice(0, MOST_WAITING);
        const lost = all.length - this.#waiting.length;
        log.warn('wrong management credentials cannot be recorded now', { waiting: this.#waiting.length, lost, error });
        this.#sweepLater(); // Which tries again.
        return;
      }
    }
  }
}
