import type { Pass } from '../../core/account.js';
import type { Admission } from '../../core/admission.js';
import type { Refusal } from '../../core/refusal.js';
import type { CacheTransaction } from '../../core/cache-transaction.js';
import type { Forwarding, Receiver } from './forwarder.js';
import { asUpstreamHeaders, storableHeadOf } from './stored-headers.js';
import type { RequestRecord } from './request-record.js';
import { IdleTimer, type IdleTimers } from './timeouts.js';

export interface CacheTeeOptions {
  admission: Pick<Admission, 'addCompanion' | 'finish'>;
  idleTimers: IdleTimers;
  /** Idle timeout of the upstream after the client has disconnected. */
  requestTimeoutMs: number;
  /** Of the request whose client gets the response. */
  record: RequestRecord;
}

/**
 * Passes an upstream response both to the cache and to the client that requested it. If the client disconnects, the transfer continues as
 * long as other requests wait for the response or a part of it is already captured for the cache.
 */
export class CacheTee implements Receiver {
  readonly #transaction: CacheTransaction;
  readonly #pass: Pass;
  readonly #options: CacheTeeOptions;
  #client: Receiver | null;
  /** The upstream responded 304, and the stored response is sent in place of it. */
  #isRevalidated = false;
  #forwarding: Forwarding | null = null;
  readonly #idleTimer: IdleTimer;
  #companionPass: Pass | null = null;
  #hasEnded = false;

  constructor(client: Receiver, transaction: CacheTransaction, pass: Pass, options: CacheTeeOptions) {
    this.#transaction = transaction;
    this.#pass = pass;
    this.#options = options;
    this.#client = client;
    this.#idleTimer = new IdleTimer(options.idleTimers);
  }

  started(forwarding: Forwarding): void {
    this.#forwarding = forwarding;
  }

  head(status: number, rawHeaders: readonly Buffer[]): void {
    const nowMs = this.#options.idleTimers.clock.now();
    const { head, headers } = storableHeadOf(status, rawHeaders, this.#pass.upstreamKey, nowMs);
    const confirmed = this.#transaction.onResponseHead(head, headers);
    if (confirmed) {
      this.#isRevalidated = true;
      if (this.#client) this.#options.record.content?.revalidated();
      this.#client?.head(confirmed.status, asUpstreamHeaders(confirmed));
      this.#client?.data(confirmed.body);
    } else {
      this.#client?.head(status, rawHeaders);
    }
    this.#continueWithoutClient();
  }

  data(chunk: Buffer): boolean {
    if (this.#isRevalidated) return true;
    this.#transaction.onChunk(chunk);
    const isTaken = this.#client?.data(chunk) ?? true;
    this.#continueWithoutClient();
    // A slow client must not delay the requests that wait for the complete response.
    return isTaken || this.#transaction.hasWaitingFollowers;
  }

  end(): void {
    // Stored before the client's response ends: the client may repeat its request immediately.
    this.#transaction.onComplete();
    this.#client?.end();
    this.#end();
  }

  fail(refusal: Refusal): void {
    this.#transaction.onFailure();
    this.#client?.fail(refusal);
    this.#end();
  }

  /** The client has disconnected. @returns whether the transfer continues for others. */
  clientLeft(): boolean {
    this.#client = null;
    if (this.#hasEnded || !this.#transaction.isNeededByOthers) return false;
    const { admission, requestTimeoutMs } = this.#options;
    // So that revoking the token ends this transfer too.
    this.#companionPass = admission.addCompanion(this.#pass);
    this.#companionPass.holder = {
      cut: () => {
        this.#abort();
      },
    };
    this.#idleTimer.start(requestTimeoutMs, () => {
      this.#abort();
    });
    // The last request that waited may leave before the upstream sends anything.
    this.#transaction.onUnneeded = () => {
      this.#abort();
    };
    this.#forwarding?.resume(); // It may have been paused because the client read too slowly.
    return true;
  }

  /**
   * After the client has disconnected: checks that the response is still wanted, and applies the idle timeout. Until then, the client's
   * exchange enforces timeouts and revocation.
   */
  #continueWithoutClient(): void {
    if (this.#client !== null || this.#hasEnded) return;
    if (this.#transaction.isNeededByOthers) this.#idleTimer.touch();
    else this.#abort();
  }

  #abort(): void {
    if (this.#hasEnded) return;
    this.#forwarding?.abort();
    this.#transaction.quit();
    this.#end();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#idleTimer.end();
    if (this.#companionPass) this.#options.admission.finish(this.#companionPass);
    this.#companionPass = null;
  }
}
