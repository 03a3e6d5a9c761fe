/**
 * Sessions of front ends: of the Admin UI, which keeps their IDs in a cookie, and of command lines, which have secrets. They are rows of
 * the database, read with each request, so that a session that has ended has ended on all instances.
 */
import { randomUUID } from 'node:crypto';
import type { AuditAction, Role } from '../api/vocabulary.js';
import type { Caller } from './audit.js';
import { auditRecord } from './audit.js';
import { actorOfOperator, type Authority, authorityOfSession, type EndedSession } from './authority.js';
import type { Clock, Operator, RecordStore, Session, SessionFrontEnd, SessionRow } from './ports.js';
import { orUnavailable, Refusal, sessionEnded } from './refusal.js';
import { digestOf, isWellFormedSecretOf, mintSecretOf } from './token.js';

/** The longest that a session lasts. */
export const MAX_SESSION_MS = 8 * 3_600_000;
/** How long a session that has expired can still be read. */
const KEPT_MS = 7 * 86_400_000;

/** A session for display: with the role that it has now. */
export type ShownSession = Omit<Session, 'role'> & { role: Role | null };

/** A person whom the company's identity provider knows, with what the mapping of roles gives. */
export type Person = Pick<Session, 'actor' | 'projects' | 'ceilings'> & { name: string; role: Role; mapping: string };

export interface SessionsOptions {
  store: Pick<RecordStore, 'access' | 'change'>;
  clock: Pick<Clock, 'now'>;
  /** SHA-256 of the mapping of roles that is in force, in hex; null if there is none. Sessions of people with another one have ended. */
  mapping?: () => string | null;
}

const ACTIONS = {
  admin: { begin: 'admin.login', end: 'admin.logout' },
  cli: { begin: 'cli.login', end: 'cli.logout' },
} as const satisfies Record<SessionFrontEnd, Record<'begin' | 'end', AuditAction>>;

const NOBODY = { name: null, operatorId: null, role: null, projects: null, ceilings: null, mapping: null } as const;

const notFound = () => new Refusal('not_found', 'session not found');

export class Sessions {
  readonly #store: SessionsOptions['store'];
  readonly #clock: SessionsOptions['clock'];
  readonly #mapping: () => string | null;

  constructor({ store, clock, mapping = () => null }: SessionsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#mapping = mapping;
  }

  /** The holder of the management token logs in to the Admin UI. @throws {Refusal} `unavailable` when it cannot be recorded; so do the others. */
  async begin(caller: Caller): Promise<ShownSession> {
    return (await this.#begin('admin', { ...NOBODY, actor: 'admin' }, caller)).session;
  }

  /** An operator logs in to the Admin UI. @throws {Refusal} `log_in_refused` if it was changed meanwhile. */
  async beginForOperator(operator: Operator, caller: Caller): Promise<ShownSession> {
    const { id, name, role } = operator;
    const who = { ...NOBODY, actor: actorOfOperator(name), name, operatorId: id };
    const { session } = await this.#begin('admin', who, caller, operator);
    return { ...session, role };
  }

  /** @returns with a secret for the command line. */
  async beginForPerson(
    frontEnd: SessionFrontEnd,
    person: Person,
    caller: Caller,
  ): Promise<{ session: ShownSession; secret: string | null }> {
    return this.#begin(frontEnd, { ...NOBODY, ...person }, caller);
  }

  async #begin(
    frontEnd: SessionFrontEnd,
    who: Pick<Session, 'actor' | keyof typeof NOBODY>,
    caller: Caller,
    operator?: Operator,
  ): Promise<{ session: ShownSession; secret: string | null }> {
    const now = this.#clock.now();
    const session: Session = {
      ...who,
      id: randomUUID(),
      frontEnd,
      begunAtMs: now,
      expiresAtMs: Math.min(now + MAX_SESSION_MS, operator?.expiresAtMs ?? Infinity),
      endedAtMs: null,
    };
    const secret = frontEnd === 'cli' ? mintSecretOf('session') : null;
    await orUnavailable(
      this.#store.change(async (tx) => {
        // So that a change of the operator is either before the session, or ends it.
        if (operator && (await tx.access.lockOperator(operator.id))?.updatedAtMs !== operator.updatedAtMs)
          throw new Refusal('log_in_refused', 'the operator was changed meanwhile: log in again');
        await tx.access.deleteSessionsExpiredBefore(now - KEPT_MS);
        await tx.access.insertSession({ ...session, digest: secret && digestOf(secret) });
        await tx.record(auditRecord(subjectOf(session, 'begin'), by(session, caller), 'success', now));
      }),
    );
    return { session, secret };
  }

  /** @throws {Refusal} `not_found` for an unknown session. */
  async session(id: string): Promise<ShownSession> {
    const row = await orUnavailable(this.#store.access.session(id));
    if (!row) throw notFound();
    return this.#shown(row);
  }

  #shown(row: SessionRow): ShownSession {
    const { session, operator } = row;
    const now = this.#clock.now();
    const hasEnded = session.endedAtMs === null && session.expiresAtMs > now && isEnded(this.#authorityOf(row));
    return { ...session, role: operator?.role ?? session.role, endedAtMs: hasEnded ? now : session.endedAtMs };
  }

  /**
   * Idempotent. `expect` throws a refusal if this state of the session must not be ended.
   *
   * @throws {Refusal} as `session` does.
   */
  async end(id: string, caller: Caller, expect?: (before: ShownSession) => void): Promise<ShownSession> {
    const shown = await this.session(id);
    expect?.(shown);
    if (shown.endedAtMs !== null) return shown;
    const endedAtMs = this.#clock.now();
    await orUnavailable(
      this.#store.change(async (tx) => {
        const session = await tx.access.lockSession(id);
        if (session?.endedAtMs !== null) return; // Of two at the same time, one is recorded.
        await tx.access.endSession(id, endedAtMs);
        await tx.record(auditRecord(subjectOf(session, 'end'), by(session, caller), 'success', endedAtMs));
      }),
    );
    return this.session(id);
  }

  /**
   * Another mapping of roles is in force. The sessions that began with another one have ended by that; this makes sure that they stay so
   * if theirs comes back. @throws {Refusal} `unavailable`
   */
  async endThoseOfOtherMappings(): Promise<void> {
    const [mapping, now] = [this.#mapping(), this.#clock.now()];
    await orUnavailable(this.#store.change((tx) => tx.access.endSessionsOfOtherMappings(mapping, now)));
  }

  /** What a session allows; null: everything. @throws {Refusal} `session_ended`, also for an unknown session. */
  async authority(id: string): Promise<Authority | null> {
    return this.#activeAuthority(await orUnavailable(this.#store.access.session(id)));
  }

  /** The same by the secret of a command line. @returns undefined for a secret that no session has had. @throws {Refusal} `session_ended` */
  async authorityOfSecret(secret: string): Promise<Authority | null | undefined> {
    if (!isWellFormedSecretOf('session', secret)) return undefined;
    const row = await orUnavailable(this.#store.access.sessionByDigest(digestOf(secret)));
    return row ? this.#activeAuthority(row) : undefined;
  }

  #activeAuthority(row: SessionRow | null): Authority | null {
    if (!row) throw sessionEnded();
    const authority = this.#authorityOf(row);
    if (isEnded(authority)) throw sessionEnded(authority.why);
    return authority;
  }

  #authorityOf(row: SessionRow) {
    return authorityOfSession(row, this.#mapping(), this.#clock.now());
  }
}

const isEnded = (authority: Authority | EndedSession | null): authority is EndedSession =>
  authority !== null && 'why' in authority;

const subjectOf = ({ id, frontEnd, name, role }: Session, what: 'begin' | 'end') => ({
  action: ACTIONS[frontEnd][what],
  details: {
    session: id,
    ...(what === 'begin' && name !== null && { name }),
    ...(what === 'begin' && role && { role }),
  },
});

/** Who logs in or out is named as the actor, because the front end has the management token. */
const by = ({ actor }: Session, caller: Caller): Caller => ({
  ...caller,
  actor: actor === 'admin' ? caller.actor : actor,
});
