/** People log in with the company's identity provider: in a browser with an authorization code, on a command line with a device code. */
import { createHash, randomBytes } from 'node:crypto';
import { MAX_NAME_LENGTH, MAX_NAMED_ACTOR_LENGTH, plainName } from '../api/vocabulary.js';
import { AddressLimit } from '../core/address-limit.js';
import type { Caller } from '../core/audit.js';
import { AuditWriter } from '../core/audit-writer.js';
import { withoutSecrets } from '../core/masking.js';
import type { Clock, Log, RecordStore, SessionFrontEnd } from '../core/ports.js';
import { Refusal } from '../core/refusal.js';
import type { Person } from '../core/sessions.js';
import type { DeviceGrant, IdentityProvider, IdentityProviderOptions, LogInChecks } from './identity-provider.js';
import { type Claims, roleFor, type RoleMapping } from './role-mapping.js';
import { SealedSteps } from './sealed-steps.js';

export interface LogInsOptions<Session> extends IdentityProviderOptions {
  /** Where the identity provider sends browsers back to. */
  redirectUri: string;
  managementToken: string;
  /** The mapping of roles in force. SIGHUP may replace it. */
  roles: { readonly current: RoleMapping | null };
  /** Starts the session of a person. */
  begin: (frontEnd: SessionFrontEnd, person: Person, caller: Caller) => Promise<Session>;
  store: Pick<RecordStore, 'change'>;
  clock: Clock;
  log: Log;
}

/** The sealed parts of a log-in. */
interface DeviceStep {
  code: string;
  intervalSeconds: number;
}

const LOG_IN_MS = 10 * 60_000;
/** Public requests of one address in a minute. A log-in of a command line polls for minutes, and a company may have one address. */
const BEGINS_PER_MINUTE = 10;
const POLLS_PER_MINUTE = 300;
/** Of browsers that come back. Anybody can begin a log-in, and come back with invented codes, for which the provider would be asked. */
const RETURNS_PER_MINUTE = 60;
const SLOWER_SECONDS = 5;
const MAX_REMEMBERED_CODES = 1_000;
const MAX_CLAIM_LENGTH = 1_000;

export class LogIns<Session> {
  readonly #options: LogInsOptions<Session>;
  readonly #steps: SealedSteps;
  readonly #audit: AuditWriter;
  readonly #begins: AddressLimit;
  readonly #polls: AddressLimit;
  readonly #returns: AddressLimit;
  readonly #polled: PollTimes;
  #provider: Promise<IdentityProvider> | null = null;

  constructor(options: LogInsOptions<Session>) {
    const { managementToken, store, clock } = options;
    this.#options = options;
    this.#steps = new SealedSteps(managementToken, clock);
    this.#audit = new AuditWriter(store, clock);
    this.#begins = new AddressLimit(clock, BEGINS_PER_MINUTE);
    this.#polls = new AddressLimit(clock, POLLS_PER_MINUTE);
    this.#returns = new AddressLimit(clock, RETURNS_PER_MINUTE);
    this.#polled = new PollTimes(clock);
  }

  get issuer(): string {
    return this.#options.issuer;
  }

  /** @returns where the browser goes, and what its front end must give back. @throws {Refusal} `unavailable` */
  async beginWeb(): Promise<{ url: string; state: string }> {
    const checks: LogInChecks = { state: secret(), nonce: secret(), verifier: secret() };
    const url = await (await this.#idp()).authorizationUrl(this.#options.redirectUri, checks);
    return { url, state: this.#steps.seal('web', checks, LOG_IN_MS) };
  }

  /** @param query with which the browser came back. @throws {Refusal} `log_in_refused`, `too_many_attempts`, `unavailable` */
  async finishWeb(state: string, query: string, caller: Caller): Promise<Session> {
    const checks = this.#steps.open('web', state) as LogInChecks | null;
    if (checks === null) throw refused('this log-in was not begun here, or took longer than ten minutes: begin again');
    this.#returns.count(caller.clientIp);
    const cameBackTo = new URL(this.#options.redirectUri);
    cameBackTo.search = query;
    return this.#begin(await (await this.#idp()).claimsForCode(cameBackTo, checks), 'admin', caller);
  }

  /** @throws {Refusal} `too_many_attempts`, `unavailable` */
  async beginDevice({ clientIp }: Caller): Promise<Omit<DeviceGrant, 'deviceCode'> & { step: string }> {
    this.#begins.count(clientIp);
    const { deviceCode: code, ...shown } = await (await this.#idp()).beginDevice();
    const { expiresInSeconds, intervalSeconds } = shown;
    const step: DeviceStep = { code, intervalSeconds };
    return { ...shown, step: this.#steps.seal('device', step, expiresInSeconds * 1000) };
  }

  /** @throws {Refusal} `login_pending` until the person has entered the code; `log_in_refused`, `too_many_attempts`, `unavailable` */
  async finishDevice(sealedStep: string, caller: Caller): Promise<Session> {
    this.#polls.count(caller.clientIp);
    const step = this.#steps.open('device', sealedStep) as DeviceStep | null;
    if (step === null) throw refused('the code is not one of this daemon, or has expired: begin again');
    const waitMs = this.#polled.next(step);
    if (waitMs > 0) throw pending(waitMs);
    const claims = await (await this.#idp()).claimsForDevice(step.code);
    if (claims === 'slow_down') this.#polled.slowDown(step);
    if (claims === 'slow_down' || claims === 'pending') throw pending(this.#polled.waitMs(step));
    return this.#begin(claims, 'cli', caller);
  }

  async #begin(claims: Claims, frontEnd: SessionFrontEnd, caller: Caller): Promise<Session> {
    const { issuer, roles, begin } = this.#options;
    const mapping = roles.current;
    const actor = actorIn(issuer, claims);
    const name = nameIn(claims);
    const row = mapping && roleFor(mapping, claims);
    if (mapping === null || row === null) {
      const action = frontEnd === 'cli' ? 'cli.login' : 'admin.login';
      await this.#audit.recordRefusal(
        { action, details: { name } },
        { ...caller, actor },
        'no row of OIDC_ROLES matches',
      );
      throw refused(`${name} has no role here: ask the operators of llmp for one`);
    }
    const { role, projects, ceilings } = row;
    return begin(frontEnd, { actor, name, role, projects, ceilings, mapping: mapping.sha256 }, caller);
  }

  /** Loaded at the first log-in: most daemons have no use for it. */
  #idp(): Promise<IdentityProvider> {
    this.#provider ??= import('./identity-provider.js').then((loaded) => new loaded.IdentityProvider(this.#options));
    return this.#provider;
  }
}

/** 256 random bits in base64url, as PKCE requires of a verifier (RFC 7636, 4.1). */
const secret = () => randomBytes(32).toString('base64url');

const refused = (message: string) => new Refusal('log_in_refused', message);
const pending = (waitMs: number) =>
  new Refusal('login_pending', 'the person has not entered the code yet', {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  });

/**
 * Who it is in the audit log, and whose tokens are. The same `sub` is another person at another issuer, so both identify a person. An issuer
 * has no fragment, so no two pairs are written alike.
 */
function actorIn(issuer: string, { sub }: Claims): `person:${string}` {
  const cannotBeUsed = 'the identity provider gives an ID that cannot be used';
  if (typeof sub !== 'string' || !/^[\x21-\x7e]+$/.test(sub) || withoutSecrets(sub) !== sub)
    throw refused(cannotBeUsed);
  const id = `${issuer.replace(/^https:\/\//, '')}#${sub}`;
  if (id.length > MAX_NAMED_ACTOR_LENGTH) throw refused(cannotBeUsed);
  return `person:${id}`;
}

/** The name for people to read, which at many providers people choose themselves. */
function nameIn({ sub, name, email, preferred_username: username }: Claims): string {
  for (const claim of [name, email, username]) {
    if (typeof claim !== 'string') continue;
    const written = withoutSecrets(claim.slice(0, MAX_CLAIM_LENGTH)).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
    const plain = Array.from(plainName(written)).slice(0, MAX_NAME_LENGTH).join('');
    if (plain !== '') return plain;
  }
  return String(sub).slice(0, MAX_NAME_LENGTH);
}

/** When each device code may be asked for again, so that a client that polls too often costs the identity provider nothing. */
class PollTimes {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By digest. The oldest are forgotten. */
  readonly #codes = new Map<string, { intervalMs: number; nextAtMs: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Counts a poll. @returns 0 if it may be made now, else the ms to wait. */
  next(step: DeviceStep): number {
    const waitMs = this.waitMs(step);
    const known = this.#known(step);
    if (waitMs === 0) known.nextAtMs = this.#clock.monotonic() + known.intervalMs;
    return waitMs;
  }

  waitMs(step: DeviceStep): number {
    return Math.max(0, this.#known(step).nextAtMs - this.#clock.monotonic());
  }

  /** RFC 8628, 3.5. */
  slowDown(step: DeviceStep): void {
    const known = this.#known(step);
    known.intervalMs += SLOWER_SECONDS * 1000;
    known.nextAtMs += SLOWER_SECONDS * 1000;
  }

  #known({ code, intervalSeconds }: DeviceStep) {
    const key = createHash('sha256').update(code).digest('base64url');
    let known = this.#codes.get(key);
    if (!known) {
      this.#codes.set(key, (known = { intervalMs: intervalSeconds * 1000, nextAtMs: 0 }));
      const [oldest] = this.#codes.keys();
      if (this.#codes.size > MAX_REMEMBERED_CODES && oldest !== undefined) this.#codes.delete(oldest);
    }
    return known;
  }
}
