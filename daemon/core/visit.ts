import type { Fresh, ResponseCache } from './cache/response-cache.js';
import {
  type AnswerHead,
  entriesOf,
  type Keeping,
  keepingOf,
  placeOf,
  type PlaceFacts,
  placeWithin,
  questionAbout,
  refreshedHeaders,
  speaksOf,
} from './cache/caching.js';
import { Capture } from './capture.js';
import { fieldsOf, type FieldValues } from './cache/field-values.js';
import { type Flight, Follower } from './cache/flights.js';
import type { CachePlace, Fill, Found, KeptAnswer, LookUp } from './ports.js';
import { Refusal } from './refusal.js';
import { type Condition, suffices, type Wish } from './cache/wish.js';

/** The request that visits. It is told one of these, and of waiting perhaps before. */
export interface Visitor {
  replay(fresh: Fresh): void;
  /** The upstream is to be asked. */
  ask(): void;
  refuse(refusal: Refusal): void;
  /** For another one's answer. */
  wait(): void;
  /** Others wait for its answer. */
  hurry(): void;
}

export type VisitFacts = PlaceFacts & { path: string; wish: Wish };

/** One request's dealings with the cache. */
export class Visit extends Follower {
  readonly #cache: ResponseCache;
  readonly #facts: VisitFacts;
  readonly #visitor: Visitor;
  readonly #place: CachePlace;
  /** Where its own answer stands, once it is known by what answers differ. */
  #names: readonly string[] = [];
  #fill: Fill | null = null;
  #stale: KeptAnswer | null = null;
  #capture: Capture | null = null;
  #hasHead = false;
  /** Monotonic: from then on what comes grows older. */
  #askedAtMs = 0;
  /** It follows nobody, nor anybody it. */
  #isAlone = false;
  #isOver = false;

  constructor(cache: ResponseCache, facts: VisitFacts, visitor: Visitor) {
    super();
    this.#cache = cache;
    this.#facts = facts;
    this.#visitor = visitor;
    this.#place = placeOf(facts);
  }

  get condition(): Condition | null {
    return this.#facts.wish.condition;
  }

  begin(): void {
    const flight = this.#joins ? this.#cache.flights.openAt(this.#place) : null;
    if (flight) this.#follow(flight);
    else this.#look(this.#place, this.#facts.wish.reads);
  }

  get #joins(): boolean {
    const { wish } = this.#facts;
    return wish.joins && !wish.isOnlyIfCached && !this.#isAlone;
  }

  #follow(flight: Flight): void {
    this.flight = flight;
    flight.join(this);
    this.#visitor.wait();
    flight.leader?.followed();
  }

  #look(place: CachePlace, reads: boolean): void {
    const { wish } = this.#facts;
    const looked = this.#cache.lookUp(place, reads, wish.fills && !wish.isOnlyIfCached);
    if (looked instanceof Promise) void looked.then(this.#looked);
    else this.#looked(looked);
  }

  readonly #looked = ({ found, fill }: LookUp) => {
    this.#fill = fill;
    if (this.#isOver) {
      this.#dropFill();
    } else if (found === null) {
      this.#ask();
    } else if (found.content.kind === 'vary') {
      // A sign where another one has led to is not ours.
      if (this.#names.length > 0) this.#look(this.#place, false);
      else this.#lookWithin(found.content.names);
    } else {
      this.#foundAnswer(found.content, found);
    }
  };

  #lookWithin(names: readonly string[]): void {
    this.#names = names;
    this.#look(placeWithin(this.#place, names, this.#facts.fields), true);
  }

  #foundAnswer(answer: KeptAnswer, { heldMs, freshMs }: Found): void {
    const { wish } = this.#facts;
    const fresh = this.#cache.freshOf(answer, heldMs, freshMs);
    const ages = this.#cache.agesOf(fresh);
    if (suffices(wish, answer, ages)) {
      this.#dropFill();
      this.#land(fresh);
      this.#visitor.replay(fresh);
      return;
    }
    this.#stale = answer;
    // Fresh, but not for this client: no fill has begun.
    if (ages.freshForMs > 0 && wish.fills && !wish.isOnlyIfCached) this.#look(this.#place, false);
    else this.#ask();
  }

  #ask(): void {
    if (this.flight === null && this.#joins) {
      // Another one may have been first, while this one looked.
      const flight = this.#cache.flights.board(this.#place, this);
      if (flight && flight.leader !== this) {
        this.#dropFill();
        this.#follow(flight);
        return;
      }
      this.flight = flight;
    }
    this.#cache.misses += 1;
    this.#askedAtMs = this.#cache.monotonic();
    if (this.#facts.wish.isOnlyIfCached) this.#visitor.refuse(new Refusal('not_cached', 'not in cache'));
    else this.#visitor.ask();
  }

  /** Hands the answer to those who wait for it, as far as it is theirs too. */
  #land(fresh: Fresh): void {
    const { flight } = this;
    this.flight = null;
    for (const follower of flight?.land() ?? []) (follower as Visit).#arrived(fresh, this.#names, this.#facts.fields);
  }

  #arrived(fresh: Fresh, names: readonly string[], fields: FieldValues): void {
    const placeFor = (values: FieldValues) => placeWithin(this.#place, names, values).variant;
    const isItsOwn = placeFor(fields) === placeFor(this.#facts.fields);
    if (isItsOwn && suffices(this.#facts.wish, fresh.answer, this.#cache.agesOf(fresh))) {
      this.#visitor.replay(fresh);
      return;
    }
    this.#isAlone = true;
    this.#look(this.#place, true);
  }

  override lead(): void {
    if (!this.#isOver) this.#look(this.#place, true);
  }

  override followed(): void {
    if (this.#capture !== null) this.#visitor.hurry();
  }

  override letGo(): void {
    super.letGo();
    this.#isAlone = true;
    this.#ask();
  }

  /** It has waited long enough. */
  stopWaiting(): void {
    this.flight?.leave(this);
    this.letGo();
  }

  get #isLeading(): boolean {
    return this.flight?.leader === this;
  }

  /** The request is over, or its answer not to be had for a reason that is its own: whoever follows it needs another leader. */
  quit(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#dropFill();
    this.#dropCapture();
    const { flight } = this;
    if (this.#isLeading) flight?.handOver();
    else flight?.leave(this);
    this.flight = null;
  }

  // ---- the upstream's answer

  /** What to add to the request's header fields, names and values in turn: whether what is kept is still right. */
  get question(): readonly string[] {
    const { wish, method } = this.#facts;
    return this.#stale !== null && this.#fill !== null && wish.condition === null && method === 'GET'
      ? questionAbout(this.#stale)
      : [];
  }

  /** Whether the answer may be kept, or others wait for it. */
  get isOfUse(): boolean {
    return this.#fill !== null || this.#isLeading;
  }

  /** Whether the answer is of use to anybody but the client that asked for it. */
  get isWanted(): boolean {
    return !this.#isOver && (this.#capture !== null || (!this.#hasHead && this.#hasFollowers));
  }

  get #hasFollowers(): boolean {
    return this.#isLeading && this.flight?.hasFollowers === true;
  }

  /** Whether others wait for each piece, so that the client that asked must not hold them up. */
  get isAwaited(): boolean {
    return this.#capture !== null && this.#hasFollowers;
  }

  /**
   * The answer has begun.
   *
   * @param headers those that may be kept; names and values in turn.
   * @returns what is to be answered in its place: what was kept already and is confirmed.
   */
  answered(head: AnswerHead, headers: readonly string[]): KeptAnswer | null {
    this.#hasHead = true;
    const { method, projectId, target } = this.#facts;
    // Whether or not its client is still there to hear of it.
    if (method === 'POST' && head.status < 400) this.#cache.wrote(projectId, target);
    const isAsked = this.question.length > 0 || this.#facts.wish.condition !== null;
    if (head.status === 304 && isAsked && this.#stale) return this.#confirmed(this.#stale, head, headers);
    const keeping = this.#keepingOf(head);
    if (!keeping) {
      this.#giveUp();
      return null;
    }
    this.#names = keeping.vary;
    this.#capture = new Capture(this.#cache.room, { status: head.status, headers }, keeping);
    // The followers of a stream would get it all at once, at its end.
    if (/^text\/event-stream\b/i.test(head.fields.get('content-type') ?? '')) this.#scatter();
    return null;
  }

  #keepingOf(head: AnswerHead): Keeping | null {
    const { method, path, wish } = this.#facts;
    if (this.#fill === null && !this.#hasFollowers) return null;
    return keepingOf({ method, path, isOptedIn: wish.isOptedIn }, head, this.#cache.settings, this.#cache.now());
  }

  #confirmed(stale: KeptAnswer, head: AnswerHead, headers: readonly string[]): KeptAnswer | null {
    const { condition } = this.#facts.wish;
    if (condition !== null && !speaksOf(condition, head.fields, stale)) {
      this.#giveUp();
      return null;
    }
    const merged = refreshedHeaders(stale.headers, headers);
    const fields = new Map([...fieldsOf(merged), ...head.fields]);
    const keeping = this.#keepingOf({ status: stale.status, fields, isFramed: true });
    const { ageMs, isForOptedIn } = keeping ?? stale;
    const answer: KeptAnswer = { ...stale, headers: merged, ageMs, isForOptedIn };
    if (keeping) this.#keep(answer, keeping);
    else this.#giveUp();
    return condition === null ? answer : null;
  }

  piece(bytes: Buffer): void {
    const mostBytes = this.#cache.settings.httpCacheMaxObjectBytes;
    if (this.#capture?.add(bytes, mostBytes) === false) this.#giveUp();
  }

  /** The answer has arrived whole. */
  whole(): void {
    const capture = this.#capture;
    if (!capture) return;
    this.#dropCapture();
    this.#keep(capture.whole(), capture.keeping);
  }

  /** It will not arrive, or not whole. */
  failed(): void {
    this.#giveUp();
  }

  #keep(answered: KeptAnswer, stated: Keeping): void {
    const { answer, keeping } = this.#arrivedNow(answered, stated);
    const fill = this.#fill;
    this.#fill = null;
    this.#isOver = true;
    this.#names = keeping.vary;
    const fresh = this.#cache.freshOf(answer, 0, keeping.freshMs);
    const kept = fill?.keep(entriesOf(this.#place, this.#facts.fields, keeping, answer)) ?? true;
    const handOut = (isKept: boolean) => {
      // Older than a change or a purge that some of them may have seen.
      if (!isKept) this.flight?.restart();
      else if (keeping.freshMs > 0) this.#land(fresh);
      else this.#scatter();
      this.flight = null;
    };
    if (kept instanceof Promise) void kept.then(handOut);
    else handOut(kept);
  }

  /** The answer may be as old as its request is (RFC 9111, 4.2.3). */
  #arrivedNow(answered: KeptAnswer, stated: Keeping): { answer: KeptAnswer; keeping: Keeping } {
    const delayMs = this.#cache.monotonic() - this.#askedAtMs;
    // What has a lifetime of ours lives it from now on, however long it took to be made.
    const freshMs = stated.isByDefault ? stated.freshMs : Math.max(0, stated.freshMs - delayMs);
    return {
      answer: { ...answered, ageMs: answered.ageMs + delayMs },
      keeping: { ...stated, freshMs, keepMs: stated.keepMs - stated.freshMs + freshMs },
    };
  }

  #giveUp(): void {
    this.#dropFill();
    this.#dropCapture();
    this.#scatter();
  }

  #scatter(): void {
    if (!this.#isLeading) return;
    const { flight } = this;
    this.flight = null;
    flight?.scatter(true);
  }

  #dropFill(): void {
    this.#fill?.drop();
    this.#fill = null;
  }

  #dropCapture(): void {
    this.#capture?.drop();
    this.#capture = null;
  }
}
