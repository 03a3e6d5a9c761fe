/** A worker's side of the channel to its primary: the ports that instances otherwise share through Redis. */
import type { Duplex } from 'node:stream';
import { withTimeout } from '../../core/timing.js';
import {
  type CacheKey,
  type CacheLookup,
  type CacheLookupOptions,
  type CacheSelection,
  type CacheSize,
  type CacheStore,
  type Clock,
  type HeldClaim,
  type LimitClaim,
  type LimitDecision,
  type LimitedScope,
  type Limits,
  type LimitState,
  type LimitStore,
  type Notification,
  type Notifications,
  type RateDecision,
  type RateWindow,
  type RateWindows,
  StoreUnavailable,
} from '../../core/ports.js';
import { FullWindows } from '../full-windows.js';
import { Channel, type Port } from './channel.js';
import type { ClientEnds, OfPrimary, OfWorker, PrimaryHealth } from './protocol.js';
import { bitOf, ResourceFilter } from './resource-filter.js';
import { Tunnels } from './tunnel.js';

/** A primary that runs takes those of a turn of its event loop at once. */
const MAX_OPENING = 1_000;

type PrimaryChannel = Channel<OfPrimary, OfWorker>;

export class PrimaryLink {
  readonly channel: PrimaryChannel;
  readonly notifications: LinkedNotifications;
  /** The resources that any worker may have cached. */
  readonly cached = new ResourceFilter();
  /** Called when a client has changed a resource through another worker. */
  onInvalidated: (projectId: string, resource: string) => void = () => undefined;
  health: PrimaryHealth = {
    degraded: [],
    isBusFailing: null,
    isDatabaseReady: false,
    pendingMigrations: [],
    limits: { mode: 'local', instances: null, isFull: true },
  };
  readonly #tunnels: Tunnels;
  #lastTunnel = 0;
  /** Tunnels of which the primary does not know yet. */
  #opening = 0;

  constructor(port: Port) {
    const channel: PrimaryChannel = new Channel(port);
    this.channel = channel;
    this.notifications = new LinkedNotifications(channel);
    channel.handle('health', (health) => {
      this.health = health;
    });
    channel.handle('announced', (bit) => {
      this.cached.add(bit);
    });
    this.#tunnels = new Tunnels(channel);
  }

  /**
   * Opens a connection to the primary's HTTP server.
   *
   * @param ends the ends of the client's connection, for which it stands.
   * @returns null if the primary has not taken earlier ones: clients that come and go would fill the memory of this process.
   */
  connect({ remoteAddress, localAddress }: ClientEnds): Duplex | null {
    if (this.#opening >= MAX_OPENING) return null;
    this.#opening += 1;
    const id = ++this.#lastTunnel;
    const ends = { remoteAddress, localAddress };
    const taken = () => {
      this.#opening -= 1;
    };
    this.channel.call('open', { id, ends }).then(taken, taken);
    return this.#tunnels.open(id, ends);
  }
}

class LinkedNotifications implements Notifications {
  readonly #channel: PrimaryChannel;
  readonly #listeners: ((notification: Notification) => void)[] = [];
  /** Whether the notification that listeners get now is about a change of this daemon. */
  isOwn = false;

  constructor(channel: PrimaryChannel) {
    this.#channel = channel;
    channel.handle('notify', ({ notification, isOwn }) => {
      this.isOwn = isOwn;
      for (const listener of this.#listeners) listener(notification);
      this.isOwn = false;
    });
  }

  send(notification: Notification): void {
    this.#channel.send('notify', notification);
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#listeners.push(listener);
  }
}

const nothing = () => undefined;

/** In this time the primary ends workers that do not respond. */
const INVALIDATED_WITHIN_MS = 3_000;
const ANSWER_WITHIN_MS = 1_000;

/** Windows in the primary. */
export class LinkedRateWindows implements RateWindows {
  readonly #channel: PrimaryChannel;
  readonly #clock: Clock;
  /** A question that was not answered in time: until it is, the primary is not asked again. */
  #overdue: Promise<unknown> | null = null;
  readonly #full: FullWindows;

  constructor({ channel }: PrimaryLink, clock: Clock) {
    this.#channel = channel;
    this.#clock = clock;
    this.#full = new FullWindows(clock);
  }

  take(key: string, window: RateWindow): RateDecision | Promise<RateDecision> {
    const refusal = this.#full.refusalFor(key, window);
    if (refusal) return refusal;
    if (this.#overdue) throw new StoreUnavailable('the primary does not respond');
    return this.#ask(key, window);
  }

  async #ask(key: string, window: RateWindow): Promise<RateDecision> {
    const asked = this.#channel.call('take', { key, window });
    const decision = await withTimeout(this.#clock, ANSWER_WITHIN_MS, asked, () => undefined);
    if (!decision) {
      const over = () => {
        this.#overdue = null;
      };
      this.#overdue ??= asked.then(over, over);
      throw new StoreUnavailable('the primary does not respond');
    }
    this.#full.remember(key, window, decision, this.#clock.monotonic());
    return decision;
  }
}

/** The limits of tokens and projects, which the primary counts. A primary that does not answer grants nothing. */
export class LinkedLimits implements LimitStore {
  readonly #link: PrimaryLink;
  readonly #channel: PrimaryChannel;
  readonly #clock: Clock;

  constructor(link: PrimaryLink, clock: Clock) {
    this.#link = link;
    this.#channel = link.channel;
    this.#clock = clock;
  }

  get state(): LimitState {
    return this.#link.health.limits;
  }

  async enter(claim: LimitClaim): Promise<LimitDecision> {
    const asked = this.#channel.call('enterLimits', claim);
    const decision = await withTimeout(this.#clock, ANSWER_WITHIN_MS, asked, () => null);
    if (decision) return decision;
    // What it grants later is not used.
    asked.then((late) => {
      if (late?.isGranted) this.cancel({ ...claim, grant: late });
    }, nothing);
    throw new StoreUnavailable('the primary does not respond');
  }

  settle(claim: HeldClaim, tokens: number): void {
    this.#channel.send('settleLimits', { claim, tokens });
  }

  leave(claim: HeldClaim): void {
    this.#channel.send('leaveLimits', claim);
  }

  cancel(claim: HeldClaim): void {
    this.#channel.send('cancelLimits', claim);
  }

  async left(scopes: readonly LimitedScope[]): Promise<Limits[]> {
    const asked = this.#channel.call('limitsLeft', scopes);
    const left = await withTimeout(this.#clock, ANSWER_WITHIN_MS, asked, () => null);
    if (left) return left;
    throw new StoreUnavailable('the primary does not respond');
  }
}

/**
 * A worker's cache in memory. What a client changes is removed from the caches of the other workers too: a worker announces a resource before it may
 * store a response of it, so that the others send it their changes of that resource.
 */
export class LinkedCache implements CacheStore {
  readonly backend = 'memory';
  readonly #own: CacheStore;
  readonly #channel: PrimaryChannel;
  readonly #cached: ResourceFilter;
  /** Resources that all others know this worker may cache. */
  readonly #announced = new ResourceFilter();
  /** Whether some process has been late to answer, and has not answered yet: until then no request waits for it. */
  #isLate = false;

  readonly #clock: Pick<Clock, 'after'>;

  constructor(link: PrimaryLink, own: CacheStore, clock: Pick<Clock, 'after'>) {
    const { channel, cached } = link;
    this.#own = own;
    this.#clock = clock;
    this.#channel = channel;
    this.#cached = cached;
    channel.handle('invalidate', ({ projectId, resource }) => {
      link.onInvalidated(projectId, resource);
      void own.invalidate(projectId, resource);
    });
  }

  lookUp(key: CacheKey, options: CacheLookupOptions): CacheLookup | Promise<CacheLookup> {
    const { projectId, resource } = key;
    // Changes remove only responses to GET.
    if (!options.mayStore || !resource.startsWith('GET ')) return this.#own.lookUp(key, options);
    const bit = bitOf(projectId, resource);
    return this.#announced.has(bit) ? this.#own.lookUp(key, options) : this.#lookUpNew(bit, key, options);
  }

  /** Its response is not stored if the others cannot be told in time. */
  async #lookUpNew(bit: number, key: CacheKey, options: CacheLookupOptions): Promise<CacheLookup> {
    const isKnown = !this.#isLate && (await this.#announce(bit));
    return this.#own.lookUp(key, { ...options, mayStore: isKnown });
  }

  /** Tells all others that this worker may cache a resource. @returns whether they know, as far as that was reported in time. */
  async #announce(bit: number): Promise<boolean> {
    this.#cached.add(bit);
    const announcing = this.#channel.call('announce', bit).then(
      () => {
        this.#announced.add(bit);
        return true;
      },
      () => false,
    );
    return withTimeout(this.#clock, ANSWER_WITHIN_MS, announcing, () => {
      this.#isLate = true;
      void announcing.then(() => (this.#isLate = false));
      return false;
    });
  }

  invalidate(projectId: string, resource: string): undefined | Promise<void> {
    void this.#own.invalidate(projectId, resource);
    if (!this.#cached.has(bitOf(projectId, resource))) return undefined;
    const invalidated = this.#channel.call('invalidate', { projectId, resource }).then(nothing, nothing);
    this.#channel.flush();
    return withTimeout(this.#clock, INVALIDATED_WITHIN_MS, invalidated, nothing);
  }

  purge(selection: CacheSelection): Promise<number> {
    return this.#own.purge(selection);
  }

  count(selection: CacheSelection): Promise<number> {
    return this.#own.count(selection);
  }

  size(): Promise<CacheSize> {
    return this.#own.size();
  }
}
