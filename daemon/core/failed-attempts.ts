/**
 * Failed attempts with the management credential, on one login surface. Limits what guessing costs the daemon and the audit log, not how
 * fast an address may guess: every token is compared, and the correct one is never delayed, because behind a proxy all clients share one
 * address.
 *
 * **Rate.** In any minute, ten attempts are answered as wrong, further ones as too many.
 *
 * **Audit.** Each of those ten has a record of its own. Further attempts are counted, with one record per address and minute. Records
 * are written after the response, in one transaction at a time, so that a flood makes neither its clients wait nor the database
 * busy. While the database is unavailable, up to `MAX_WAITING` records wait in memory.
 *
 * **Limits.** An IPv6 /64 network counts as one address, because its user can choose among 2^64. Beyond `MAX_ADDRESSES`, all further
 * addresses count as one. Beyond `MAX_SINGLE_RECORDS` a minute, attempts are only counted. So a minute costs at most the sum of both
 * in rows.
 */
import { networkOf } from './address.js';
import { auditRecord, type AuditRecord, type Caller, SYSTEM_CALLER } from './audit.js';
import type { Clock, Log, RecordStore } from './ports.js';
import { logInRefused, managementTokenRefused, Refusal } from './refusal.js';
import { SingleRun } from './single-run.js';

const WINDOW_MS = 60_000;
const ATTEMPTS_PER_WINDOW = 10;
const MAX_ADDRESSES = 256;
const MAX_SINGLE_RECORDS = 100;
const MAX_WAITING = 1_000;

interface Address {
  /** For the audit record; null if unknown, or if there are too many addresses. */
  name: string | null;
  /** Times of the attempts in the last minute that were answered as wrong; oldest first, up to ten. */
  refusedAtMs: number[];
  /** Attempts that are not in any record yet. */
  unrecorded: number;
}

/** A place where the management token is checked. Each has its own limits, so that attempts on one do not block the other. */
export interface LoginSurface extends Pick<AuditRecord, 'action'>, Pick<Caller, 'actor'> {
  /** The response to a wrong token. */
  refusal: () => Refusal;
}

export const MANAGEMENT_API: LoginSurface = {
  action: 'management.denied',
  actor: 'management',
  refusal: managementTokenRefused,
};
export const ADMIN_UI: LoginSurface = { action: 'admin.login', actor: 'admin', refusal: logInRefused };

export interface FailedAttemptsOptions {
  surface: LoginSurface;
  store: Pick<RecordStore, 'change'>;
  clock: Clock;
  log: Log;
}

export class FailedAttempts {
  readonly #options: FailedAttemptsOptions;
  readonly #addresses = new Map<string, Address>();
  #singleRecords = 0;
  #cancelSweep: (() => void) | null = null;
  #waiting: AuditRecord[] = [];
  readonly #writing = new SingleRun();

  constructor(options: FailedAttemptsOptions) {
    this.#options = options;
  }

  /** Number of addresses in memory. */
  get size(): number {
    return this.#addresses.size;
  }

  /**
   * Records a failed attempt. The credential itself is not passed.
   *
   * @param ip null on a Unix socket.
   * @returns the refusal to send.
   */
  refuse(ip: string | null, requestId: string | null): Refusal {
    const now = this.#options.clock.monotonic();
    const address = this.#addressOf(ip);
    address.refusedAtMs = address.refusedAtMs.filter((atMs) => atMs > now - WINDOW_MS);
    this.#sweepLater();

    const [oldest] = address.refusedAtMs;
    if (oldest !== undefined && address.refusedAtMs.length >= ATTEMPTS_PER_WINDOW) {
      address.unrecorded++;
      const retryAfterSeconds = Math.ceil((oldest + WINDOW_MS - now) / 1000);
      return new Refusal('too_many_attempts', 'too many wrong management tokens', { retryAfterSeconds });
    }
    address.refusedAtMs.push(now);
    if (this.#singleRecords < MAX_SINGLE_RECORDS) {
      this.#singleRecords++;
      this.#record(ip, requestId, null);
      this.#write();
    } else {
      address.unrecorded++;
    }
    return this.#options.surface.refusal();
  }

  /** At shutdown: writes all pending records. */
  async close(): Promise<void> {
    this.#recordCounts();
    this.#write();
    await this.#writing.current;
    this.#cancelSweep?.();
  }

  #addressOf(ip: string | null): Address {
    const network = ip === null ? '' : networkOf(ip);
    const known = this.#addresses.get(network);
    if (known) return known;
    const hasCapacity = this.#addresses.size < MAX_ADDRESSES;
    const key = hasCapacity ? network : 'others';
    const address = this.#addresses.get(key) ?? {
      name: hasCapacity ? network || null : null,
      refusedAtMs: [],
      unrecorded: 0,
    };
    this.#addresses.set(key, address);
    return address;
  }

  /** A single timer, and none while there are no addresses and no records. */
  #sweepLater(): void {
    this.#cancelSweep ??= this.#options.clock.after(WINDOW_MS, () => {
      this.#cancelSweep = null;
      this.#singleRecords = 0;
      this.#recordCounts();
      this.#write();
      const since = this.#options.clock.monotonic() - WINDOW_MS;
      for (const [key, { refusedAtMs }] of this.#addresses) {
        if ((refusedAtMs.at(-1) ?? since) <= since) this.#addresses.delete(key);
      }
      if (this.#addresses.size > 0) this.#sweepLater();
    });
  }

  /** Creates one record per address for the attempts that were only counted. */
  #recordCounts(): void {
    for (const address of this.#addresses.values()) {
      if (address.unrecorded > 0) this.#record(address.name, null, address.unrecorded);
      address.unrecorded = 0;
    }
  }

  #record(clientIp: string | null, requestId: string | null, count: number | null): void {
    const { surface, clock } = this.#options;
    const caller = { ...SYSTEM_CALLER, actor: surface.actor, requestId, clientIp };
    this.#waiting.push(auditRecord({ action: surface.action, count }, caller, 'denied', clock.now()));
  }

  /** In the background; errors are only logged. */
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
        this.#waiting = all.slice(0, MAX_WAITING);
        const lost = all.length - this.#waiting.length;
        log.warn('cannot write audit records of failed management logins, retrying', {
          waiting: this.#waiting.length,
          lost,
          error,
        });
        this.#sweepLater(); // Tries again.
        return;
      }
    }
  }
}
