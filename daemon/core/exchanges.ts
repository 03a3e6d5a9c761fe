/**
 * Exchanges of JWTs for tokens. Exactly one trust must match a JWT, whose keys have signed it. The transaction that makes the token also
 * notes that the JWT is used, with the trust's row locked: so a JWT is good once over all instances, and the maxima of a trust hold.
 */
import { createHash } from 'node:crypto';
import { MAX_NAME_LENGTH, plainName } from '../api/vocabulary.js';
import { AuditWriter } from './audit-writer.js';
import type { Caller } from './audit.js';
import { LogThrottle } from './log-throttle.js';
import { withoutSecrets } from './masking.js';
import { Pattern } from './policy/pattern.js';
import type { ChangeTransaction, Clock, Log, RecordStore, Trust } from './ports.js';
import { orUnavailable, Refusal, type RefusalKind, unavailable, wholeSeconds } from './refusal.js';
import type { IssuedToken, Registry } from './registry.js';
import { SingleRun } from './single-run.js';
import { actorOf } from './trusts.js';

/** A JWT whose form and times are good. Its signature is not verified yet. */
export interface PresentedJwt {
  /** The whole text. */
  text: string;
  /** The part that is signed. */
  signed: string;
  issuer: string;
  audience: string;
  /** As the issuer wrote them. */
  claims: Readonly<Record<string, unknown>>;
  expiresAtMs: number;
}

/** Where the keys of an issuer are. */
export type KeySource = Pick<Trust, 'issuer' | 'jwksFile'>;

/** Reads and verifies JWTs. */
export interface JwtReader {
  /** Without cryptography. @throws {Refusal} `invalid_grant` */
  read(text: string): PresentedJwt;
  /** @throws {Refusal} `invalid_grant` if no key of the source has signed it; `unavailable` if the keys cannot be read. */
  verify(jwt: PresentedJwt, source: KeySource): Promise<void>;
}

/** How much the clocks of an issuer and of this machine may differ. */
export const CLOCK_TOLERANCE_S = 60;
const HOUR_MS = 3_600_000;
/** Longer than JWTs are accepted, because the clocks of instances may differ. */
const KEPT_LONGER_MS = HOUR_MS;
/** Old entries are removed after each so many exchanges, up to so many of them at once. */
const REMOVE_AFTER_EXCHANGES = 10;
const MAX_REMOVED = 100;
/** If the trust is changed meanwhile, the search begins again. */
const ATTEMPTS = 3;
const MAX_CLAIM_LENGTH = 200;
/** Refusals of a trust that have an audit record, in a minute. A job that tries again and again would fill the log. */
const RECORDED_REFUSALS = 10;
const MINUTE_MS = 60_000;

/** Counted by the metrics. */
export const EXCHANGE_OUTCOMES = [
  'issued',
  'invalid_request',
  'invalid_grant',
  'token_used',
  'no_trust',
  'ambiguous_trust',
  'trust_limit_reached',
  'unavailable',
  'other',
] as const;
export type ExchangeOutcome = (typeof EXCHANGE_OUTCOMES)[number];

export interface ExchangesOptions {
  store: RecordStore;
  registry: Pick<Registry, 'issueToken'>;
  jwts: JwtReader;
  clock: Pick<Clock, 'now' | 'monotonic'>;
  log: Pick<Log, 'info' | 'warn'>;
}

/** Where an exchange comes from, for the audit record. */
export type ExchangeRequest = Pick<Caller, 'requestId' | 'clientIp'>;

export class Exchanges {
  readonly #options: ExchangesOptions;
  readonly #audit: AuditWriter;
  readonly #refusals: LogThrottle<'info'>;
  readonly #removing = new SingleRun();
  readonly #recorded = new Map<string, { sinceMs: number; count: number }>();
  #untilRemoval = 0;
  /** Since the start. */
  readonly outcomes = Object.fromEntries(EXCHANGE_OUTCOMES.map((outcome) => [outcome, 0])) as Record<
    ExchangeOutcome,
    number
  >;

  constructor(options: ExchangesOptions) {
    this.#options = options;
    this.#audit = new AuditWriter(options.store, options.clock);
    this.#refusals = new LogThrottle(options.clock, options.log, 10_000);
  }

  /** Counts how an exchange has ended. @param refused undefined: it was successful. */
  count(refused?: RefusalKind): void {
    const outcome = refused === undefined ? 'issued' : EXCHANGE_OUTCOMES.find((it) => it === refused);
    this.outcomes[outcome ?? 'other'] += 1;
  }

  /**
   * @param text the JWT.
   * @throws {Refusal} `invalid_grant`, `token_used`, `no_trust`, `ambiguous_trust`, `trust_limit_reached`, `unavailable`, and those of
   *   `Registry.issueToken`. It has not used the JWT up then.
   */
  async exchange(text: string, request: ExchangeRequest): Promise<IssuedToken> {
    const jwt = this.#options.jwts.read(text);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const trust = this.#trustFor(jwt, await this.#verified(jwt));
      try {
        const issued = await this.#issue(trust, jwt, request);
        this.#removeUsed();
        return issued;
      } catch (error) {
        if (error instanceof NotExchanged) throw await this.#recordedRefusal(error.refusal, trust, jwt, request);
        if (!(error instanceof TrustChanged)) throw error;
      }
    }
    throw unavailable();
  }

  /** @returns the trusts for this issuer and audience whose keys have signed the JWT. */
  async #verified(jwt: PresentedJwt): Promise<Trust[]> {
    const { store, jwts } = this.#options;
    const known = await orUnavailable(store.trusts.sourcesOf(jwt.issuer));
    if (known.length === 0) throw this.#refused(jwt, 'no_trust', 'no trust has the issuer of this JWT');
    const files = new Set(known.filter(({ audience }) => audience === jwt.audience).map(({ jwksFile }) => jwksFile));
    if (files.size === 0) throw new Refusal('invalid_grant', 'no trust has the audience of this JWT');
    let failure: unknown;
    const verified = new Set<string | null>();
    for (const jwksFile of files) {
      try {
        await jwts.verify(jwt, { issuer: jwt.issuer, jwksFile });
        verified.add(jwksFile);
      } catch (error) {
        failure = error;
      }
    }
    if (verified.size === 0) throw failure;
    const trusts = await orUnavailable(store.trusts.activeOf(jwt.issuer, jwt.audience));
    return trusts.filter(({ jwksFile }) => verified.has(jwksFile));
  }

  #trustFor(jwt: PresentedJwt, trusts: readonly Trust[]): Trust {
    const [trust, ...others] = trusts.filter(({ match }) => matches(match, jwt.claims));
    if (!trust) throw this.#refused(jwt, 'no_trust', 'no trust matches this JWT', claimNamesOf(trusts));
    if (others.length === 0) return trust;
    throw this.#refused(jwt, 'ambiguous_trust', 'several trusts match this JWT', claimNamesOf([trust, ...others]));
  }

  /** Logs it: the operator has to find out which claims a JWT has. Only those that trusts name are logged. */
  #refused(jwt: PresentedJwt, kind: RefusalKind, message: string, names: readonly string[] = []): Refusal {
    const fields = () => ({ code: kind, issuer: shown(jwt.issuer), claims: claimsShown(names, jwt.claims) });
    this.#refusals.record('info', 'JWT not exchanged', fields, kind);
    return new Refusal(kind, message);
  }

  #issue(trust: Trust, jwt: PresentedJwt, request: ExchangeRequest): Promise<IssuedToken> {
    const { id, projectId, maxRequests, durationMinutes, allow, limits, budget } = trust;
    const draft = {
      projectId,
      name: nameFrom(trust, jwt.claims),
      maxRequests,
      lifetimeMs: durationMinutes * MINUTE_MS,
      allow,
      limits,
      budget,
    };
    return this.#options.registry.issueToken(draft, callerOf(trust, request), issuerOf(trust), {
      action: 'token.exchange',
      details: { trust: id, issuer: jwt.issuer, claims: claimsShown(claimNamesOf([trust]), jwt.claims) },
      begin: async (tx) => {
        const locked = await tx.trusts.lock(id);
        // The rest of the transaction belongs to this state of the trust.
        if (locked?.updatedAtMs !== trust.updatedAtMs || !locked.isActive) throw new TrustChanged();
        if (!(await tx.trusts.useJwt(digestOf(jwt), jwt.expiresAtMs + CLOCK_TOLERANCE_S * 1000))) {
          throw new NotExchanged(
            new Refusal('token_used', 'this JWT was exchanged already: ask its issuer for another'),
          );
        }
        await this.#checkMaxima(trust, tx);
      },
    });
  }

  async #checkMaxima(trust: Trust, tx: ChangeTransaction): Promise<void> {
    const { maxActive, perHour } = trust;
    const now = this.#options.clock.now();
    const actor = actorOf(trust);
    const waits = [
      maxActive === null ? null : await tx.trusts.fullUntil(actor, maxActive, now),
      perHour === null ? null : plus(await tx.trusts.firstOfLast(actor, perHour, now - HOUR_MS), HOUR_MS),
    ];
    const [active, hourly] = waits;
    const freeAtMs = Math.max(active ?? 0, hourly ?? 0);
    if (freeAtMs === 0) return;
    const what = active ? `${maxActive} active tokens` : `${perHour} tokens an hour`;
    throw new NotExchanged(
      new Refusal('trust_limit_reached', `the maximum of this trust is reached: ${what}`, {
        retryAfterSeconds: wholeSeconds(freeAtMs - now),
      }),
    );
  }

  /** Records that a trust has refused a JWT, unless it did so many times in this minute. @returns the refusal. */
  async #recordedRefusal(
    refusal: Refusal,
    trust: Trust,
    jwt: PresentedJwt,
    request: ExchangeRequest,
  ): Promise<Refusal> {
    const nowMs = this.#options.clock.monotonic();
    let recorded = this.#recorded.get(trust.id);
    if (!recorded || recorded.sinceMs + MINUTE_MS <= nowMs) {
      for (const [id, { sinceMs }] of this.#recorded) if (sinceMs + MINUTE_MS <= nowMs) this.#recorded.delete(id);
      this.#recorded.set(trust.id, (recorded = { sinceMs: nowMs, count: 0 }));
    }
    recorded.count += 1;
    if (recorded.count <= RECORDED_REFUSALS) {
      const details = { trust: trust.id, claims: claimsShown(claimNamesOf([trust]), jwt.claims) };
      const subject = { action: 'token.exchange', projectId: trust.projectId, details } as const;
      await this.#audit.recordRefusal(subject, callerOf(trust, request), refusal.message);
    }
    return refusal;
  }

  /** Nobody waits for it: what is left now is removed later. */
  #removeUsed(): void {
    if (this.#untilRemoval-- > 0) return;
    this.#untilRemoval = REMOVE_AFTER_EXCHANGES - 1;
    const { store, clock, log } = this.#options;
    this.#removing
      .run(() => store.trusts.removeUsedJwts(clock.now() - KEPT_LONGER_MS, MAX_REMOVED))
      .catch((error: unknown) => {
        log.warn('cannot remove old entries of exchanged JWTs', { error });
      });
  }
}

/** The trust is not the one that was read before its row was locked. */
class TrustChanged extends Error {}

/** What the trust itself refuses. Not a refusal, because the registry would record each of them. */
class NotExchanged extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

const plus = (time: number | null, ms: number) => (time === null ? null : time + ms);

const callerOf = (trust: Trust, request: ExchangeRequest): Caller => ({
  actor: actorOf(trust),
  user: null,
  reason: null,
  batch: null,
  undoOf: null,
  ...request,
});

/** What is said of the tokens' issuer: the beginning of the template, such as `gha`, or else the host of the issuer. */
function issuerOf(trust: Trust) {
  const beginning = plainName(trust.name.replace(/\{.*/s, ''));
  const name = beginning === '' ? new URL(trust.issuer).host : beginning;
  return { actor: actorOf(trust), name, ceilings: null };
}

/**
 * A JWT is known by its issuer and `jti`, or else by what is signed. Not by its signature: the same JWT can have several of ECDSA, and
 * several spellings of each.
 */
function digestOf({ issuer, claims, signed }: PresentedJwt): string {
  const jti = valueOf('jti', claims);
  const known = typeof jti === 'string' && jti !== '' ? ['jti', issuer, jti] : ['jwt', issuer, signed];
  return createHash('sha256').update(JSON.stringify(known)).digest('hex');
}

const valueOf = (claim: string, claims: PresentedJwt['claims']): unknown =>
  Object.hasOwn(claims, claim) ? claims[claim] : undefined;

/** A claim as text. Objects, lists and fractions match nothing. */
function textOf(claim: string, claims: PresentedJwt['claims']): string | undefined {
  const value = valueOf(claim, claims);
  if (typeof value === 'string') return value;
  return typeof value === 'boolean' || Number.isSafeInteger(value) ? String(value) : undefined;
}

function matches(match: Trust['match'], claims: PresentedJwt['claims']): boolean {
  return Object.entries(match).every(([claim, value]) => {
    const text = textOf(claim, claims);
    return text !== undefined && new Pattern(value).matches(text);
  });
}

const CLAIM_IN_NAME = /\{([^{}]{1,100})\}/g;

/** The claims that trusts name. */
const claimNamesOf = (trusts: readonly Trust[]): string[] => [
  ...new Set(
    trusts.flatMap(({ match, name }) => [
      ...Object.keys(match),
      ...Array.from(name.matchAll(CLAIM_IN_NAME), ([, claim = '']) => claim),
    ]),
  ),
];

const claimsShown = (names: readonly string[], claims: PresentedJwt['claims']): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const text = textOf(name, claims);
      return text === undefined ? [] : [[name, shown(text)]];
    }),
  );

/** Text of others for records: bounded, without secrets and without what could disturb a terminal or a list. */
const shown = (text: string): string => withoutSecrets(text.slice(0, MAX_CLAIM_LENGTH)).replace(/[\p{C}\p{Z}]+/gu, ' ');

/** @returns null if nothing is left. */
function nameFrom(trust: Trust, claims: PresentedJwt['claims']): string | null {
  const filled = trust.name.replace(
    CLAIM_IN_NAME,
    (_, claim: string) => textOf(claim, claims)?.slice(0, MAX_CLAIM_LENGTH) ?? '',
  );
  const name = withoutSecrets(plainName(filled.replace(/[\p{C}\p{Z}]+/gu, ' ')));
  return Array.from(name).slice(0, MAX_NAME_LENGTH).join('').trim() || null;
}
