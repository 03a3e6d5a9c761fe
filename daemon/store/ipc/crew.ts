/**
 * The primary's side of the channels to its workers.
 *
 * **Changes.** A change is answered to the operator when every worker has applied it or has ended: `confirmed` asks all of them, over the channel
 * that carried the change, and ends a worker that does not reply in time. It asks before the change as well, and while the database takes long: a worker
 * that is frozen in the middle of a transaction holds locks for which the change would wait.
 *
 * **Sums.** Completed requests are recorded in the primary, where workers send them. Before a figure is read, `reported` or `settled` makes the workers
 * hand over everything they have counted.
 */
import type { Duplex } from 'node:stream';
import type { BudgetEvent, RequestEnded } from '../../core/events.js';
import {
  type CacheLookup,
  type CacheSelection,
  type CacheSize,
  type CacheStore,
  type Clock,
  type HeldClaim,
  type LimitClaim,
  type LimitDecision,
  type LimitStore,
  type Log,
  type Notification,
  type Notifications,
  type RateDecision,
  type RateWindow,
  StoreUnavailable,
} from '../../core/ports.js';
import type { WorkerReport } from '../../core/status.js';
import { SingleRun } from '../../core/single-run.js';
import { every, isDoneWithin } from '../../core/timing.js';
import { Channel, type Port } from './channel.js';
import { countersOf, type Figures, NO_FIGURES, plus } from './figures.js';
import type { Briefing, OfPrimary, OfWorker, PrimaryHealth, Reloading } from './protocol.js';
import { decoded } from './records.js';
import { ResourceFilter } from './resource-filter.js';
import { Tunnels } from './tunnel.js';

const CONFIRM_WITHIN_MS = 2_000;
/** The rest of the same time, for a worker that may hold the locks for which a change waits (sql/attended-database.ts). */
const RESPOND_WITHIN_MS = 1_750;
/** A worker that does not respond for so long serves nobody. */
const ALIVE_EVERY_MS = 10_000;
const ALIVE_WITHIN_MS = 30_000;
/** How long a reader of figures waits for a worker that does not respond; after that none waits for it until it has responded. */
const FIGURES_WITHIN_MS = 2_000;

/** A worker's process. */
export interface WorkerProcess extends Port {
  readonly number: number;
  readonly pid: number;
  readonly startedAtMs: number;
  /** Ends it at once. */
  kill(): void;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
}

interface Member {
  process: WorkerProcess;
  channel: Channel<OfWorker, OfPrimary>;
  figures: Figures;
  /** Whether it has not responded in time to the last request for figures. */
  isLate: boolean;
  /** Null until it listens. */
  address: string | null | undefined;
}

export interface CrewOptions {
  /** Connects this daemon to others on the same database; null without Redis. */
  outer: Notifications | null;
  clock: Clock;
  log: Log;
}

/** What workers use of the primary. */
export interface CrewServices {
  /** Publishes an event of a worker. */
  publish: (event: BudgetEvent) => void;
  record: (ended: RequestEnded) => void;
  take: (key: string, window: RateWindow) => RateDecision | Promise<RateDecision>;
  limits: LimitStore;
  /** A client's connection, for requests that workers do not serve. */
  connection: (connection: Duplex) => void;
}

export class Crew implements Notifications {
  readonly #options: CrewOptions;
  readonly #members = new Set<Member>();
  readonly #listeners: ((notification: Notification) => void)[] = [];
  readonly #cached = new ResourceFilter();
  #services: CrewServices | null = null;
  /** Counts of workers that have ended. */
  #former: Figures = NO_FIGURES;
  readonly #reports = new SingleRun();
  readonly #settlements = new SingleRun();
  /** Called after the figures have changed. */
  onFigures: () => void = () => undefined;

  constructor(options: CrewOptions) {
    this.#options = options;
    options.outer?.onNotification((notification) => {
      this.#notifyHere(notification);
      this.#notifyWorkers(notification, false, null);
    });
  }

  /** Call before the first worker. */
  serve(services: CrewServices): void {
    this.#services = services;
  }

  /** @returns the address at which the worker listens, once it does; rejects if it ends before. */
  add(process: WorkerProcess, briefing: Omit<Briefing, 'cached'>): Promise<string | null> {
    const channel = new Channel<OfWorker, OfPrimary>(process);
    const member: Member = { process, channel, figures: NO_FIGURES, isLate: false, address: undefined };
    this.#members.add(member);
    // Ends it if it does not respond any more: connections would wait for it forever.
    const stopWatching = every(this.#options.clock, ALIVE_EVERY_MS, () => this.#confirmedBy(member, ALIVE_WITHIN_MS));
    void process.ended.then(() => {
      stopWatching();
      this.#members.delete(member);
      this.#former = plus(this.#former, countersOf(member.figures));
      channel.close();
    });
    const tunnels = new Tunnels(channel);
    channel.handle('open', ({ id, ends }) => {
      this.#services?.connection(tunnels.open(id, ends));
    });
    channel.handle('notify', (notification) => {
      this.#notifyWorkers(notification, false, member);
      this.#notifyHere(notification);
      this.#options.outer?.send(notification);
    });
    channel.handle('invalidate', async (resource) => {
      const others = [...this.#members].filter((other) => other !== member);
      for (const other of others) other.channel.send('invalidate', resource);
      await Promise.all(others.filter(hasBegun).map((other) => this.#confirmedBy(other)));
    });
    channel.handle('announce', async (bit) => {
      this.#cached.add(bit);
      const others = [...this.#members].filter((other) => other !== member);
      const told = others.map((other) => [other, other.channel.call('announced', bit).catch(() => undefined)] as const);
      await Promise.all(told.flatMap(([other, reply]) => (hasBegun(other) ? reply : [])));
    });
    channel.handle('ended', (batch) => {
      for (const ended of decoded(batch)) this.#services?.record(ended);
    });
    channel.handle('budget', (event) => {
      this.#services?.publish(event);
    });
    channel.handle('take', ({ key, window }) => {
      if (!this.#services) throw new Error('a worker began too early');
      return this.#services.take(key, window);
    });
    this.#serveLimits(channel, process);
    channel.send('begin', { ...briefing, cached: this.#cached.bytes.slice() });
    return new Promise((resolve, reject) => {
      channel.handle('listening', (address) => {
        member.address = address;
        resolve(address);
      });
      void process.ended.then(() => {
        reject(new StoreUnavailable('a worker ended before it listened'));
      });
    });
  }

  /** The slots of a worker are returned when it ends. */
  #serveLimits(channel: Member['channel'], process: WorkerProcess): void {
    const slots = new Map<string, HeldClaim>();
    let hasEnded = false;
    const limits = () => {
      if (!this.#services) throw new Error('a worker began too early');
      return this.#services.limits;
    };
    const keep = (claim: LimitClaim, decision: LimitDecision) => {
      if (!decision.isGranted || !claim.takesSlot) return decision;
      const held = { ...claim, grant: decision };
      if (hasEnded) limits().leave(held);
      else slots.set(claim.id, held);
      return decision;
    };
    channel.handle('enterLimits', (claim) => {
      const decision = limits().enter(claim);
      return decision instanceof Promise ? decision.then((it) => keep(claim, it)) : keep(claim, decision);
    });
    channel.handle('settleLimits', ({ claim, tokens }) => {
      limits().settle(claim, tokens);
    });
    channel.handle('leaveLimits', (claim) => {
      if (slots.delete(claim.id)) limits().leave(claim);
    });
    channel.handle('cancelLimits', (claim) => {
      if (!claim.takesSlot || slots.delete(claim.id)) limits().cancel(claim);
    });
    channel.handle('limitsLeft', (scopes) => limits().left(scopes));
    void process.ended.then(() => {
      hasEnded = true;
      for (const claim of slots.values()) limits().leave(claim);
      slots.clear();
    });
  }

  // ---- notifications and changes

  send(notification: Notification): void {
    this.#notifyWorkers(notification, true, null);
    this.#options.outer?.send(notification);
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#listeners.push(listener);
  }

  #notifyHere(notification: Notification): void {
    for (const listener of this.#listeners) listener(notification);
  }

  #notifyWorkers(notification: Notification, isOwn: boolean, except: Member | null): void {
    for (const member of this.#members) if (member !== except) member.channel.send('notify', { notification, isOwn });
  }

  /**
   * Resolves when every worker has applied all changes sent so far, or has ended. A worker whose program is being loaded reads what it needs from the
   * database later, and a busy machine may take seconds to load it.
   */
  async confirmed(): Promise<void> {
    await Promise.all([...this.#members].filter(hasBegun).map((member) => this.#confirmedBy(member)));
  }

  /**
   * While the primary waits for the database: ends workers that do not respond, of which one may hold the locks. Resolves when all others have
   * responded.
   *
   * @param isWaiting whether the primary still waits. If not, a worker that has not responded is left alone: the machine is just busy.
   */
  async endUnresponsive(isWaiting: () => boolean): Promise<void> {
    const asked = [...this.#members].filter(hasBegun);
    await Promise.all(asked.map((member) => this.#confirmedBy(member, RESPOND_WITHIN_MS, isWaiting)));
  }

  async #confirmedBy(
    { channel, process }: Member,
    withinMs = CONFIRM_WITHIN_MS,
    isNeeded: () => boolean = () => true,
  ): Promise<void> {
    const { clock, log } = this.#options;
    const reply = channel.call('confirm', null).catch(() => undefined); // It has ended.
    channel.flush();
    if ((await isDoneWithin(clock, withinMs, reply)) || !isNeeded()) return;
    log.error('a worker does not respond; ending it', { worker: process.number, pid: process.pid });
    process.kill();
    await process.ended;
  }

  // ---- figures

  get figures(): Figures {
    return [...this.#members].reduce((sum, { figures }) => plus(sum, figures), this.#former);
  }

  get isServing(): boolean {
    return [...this.#members].some(({ address, figures }) => address !== undefined && figures.missing.length === 0);
  }

  get report(): WorkerReport[] {
    return [...this.#members]
      .map(({ process: { number, pid, startedAtMs }, figures, address }) => ({
        number,
        pid,
        startedAtMs,
        missing: address === undefined ? ['listener'] : figures.missing,
        inFlight: figures.gauges.http + figures.gauges.websocket,
      }))
      .sort((a, b) => a.number - b.number);
  }

  /** Resolves when the workers have handed over what they had recorded at the time of the call, or after a timeout. */
  reported(): Promise<void> {
    return this.#reports.runAfresh(() => this.#gather('report'));
  }

  /**
   * The same, and the workers have written their counts to the database. Anyone who can cause this makes them write.
   *
   * @param isChange whether a change follows: it would wait for workers that do not respond, so they are ended at the same time.
   */
  async settled(isChange: boolean): Promise<void> {
    const settled = this.#settlements.runAfresh(() => this.#gather('settle'));
    await Promise.all([settled, isChange ? this.confirmed() : undefined]);
  }

  async #gather(how: 'report' | 'settle'): Promise<void> {
    const asked = [...this.#members].filter((member) => hasBegun(member) && !member.isLate);
    await Promise.all(asked.map((member) => this.#readFigures(member, how)));
    this.onFigures();
  }

  async #readFigures(member: Member, how: 'report' | 'settle'): Promise<void> {
    const reply = member.channel.call(how, null).then(
      (figures) => {
        member.figures = figures ?? member.figures; // Undefined while it is starting.
        member.isLate = false;
      },
      () => undefined, // It has ended.
    );
    member.isLate = !(await isDoneWithin(this.#options.clock, FIGURES_WITHIN_MS, reply));
  }

  // ---- commands to all workers

  tell(health: PrimaryHealth): void {
    for (const { channel } of this.#members) channel.send('health', health);
  }

  reload(changed: Reloading): void {
    for (const { channel } of this.#members) channel.send('reload', changed);
  }

  /** Makes the workers finish their requests and end. */
  stop(): void {
    for (const { channel } of this.#members) channel.send('stop', null);
  }

  /** Asks all workers, and ends those that do not reply in time. A worker that ends holds nothing more. */
  async ask<Name extends 'purge' | 'count' | 'size'>(
    name: Name,
    argument: OfWorker[Name]['argument'],
  ): Promise<OfWorker[Name]['result'][]> {
    const replies = await Promise.all(
      [...this.#members].filter(hasBegun).map(async (member) => {
        const reply = member.channel.call(name, argument).catch(() => null);
        if (await isDoneWithin(this.#options.clock, CONFIRM_WITHIN_MS, reply)) return reply;
        await this.#confirmedBy(member);
        return null;
      }),
    );
    return replies.filter((reply) => reply !== null && reply !== undefined);
  }
}

const hasBegun = ({ channel }: Member): boolean => channel.hasBegun;

/** The caches of all workers, as the primary manages them. */
export class CrewCache implements CacheStore {
  readonly backend = 'memory';
  readonly #crew: Crew;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  lookUp(): CacheLookup {
    return { found: null, writeLease: null };
  }

  invalidate(): undefined {
    return undefined; // The primary forwards no requests.
  }

  async purge(selection: CacheSelection): Promise<number> {
    return sum(await this.#crew.ask('purge', selection));
  }

  async count(selection: CacheSelection): Promise<number> {
    return sum(await this.#crew.ask('count', selection));
  }

  async size(): Promise<CacheSize> {
    const sizes = await this.#crew.ask('size', null);
    return { entries: sum(sizes.map(({ entries }) => entries)), bytes: sum(sizes.map(({ bytes }) => bytes)) };
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
