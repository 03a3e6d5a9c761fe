/**
 * Sessions of the Admin UI. A session is a sealed cookie, which every instance can verify without stored state. A cookie cannot show
 * that its session was ended by a log-out; this is checked here.
 *
 * **The audit log is the session store.** Logins and logouts are recorded there permanently in any case, with the session ID in their
 * searchable text. A session has ended, on every instance and from the moment its logout is committed, if there is such a record. This
 * needs no table that would have to be cleaned up, and no synchronisation. It costs two index lookups per page.
 */
import { randomUUID } from 'node:crypto';
import type { AuditActor, Role } from '../api/vocabulary.js';
import type { AuditRecord, Caller } from './audit.js';
import type { Clock, RecordStore } from './ports.js';
import { orUnavailable, Refusal } from './refusal.js';
import { AuditWriter } from './audit-writer.js';

export interface AdminSession {
  id: string;
  begunAtMs: number;
  /** Null while the session is active. The holder of the cookie enforces the idle timeout. */
  endedAtMs: number | null;
  expiresAtMs: number;
  actor: AuditActor;
  name: string | null;
  role: Role | null;
}

const MAX_LIFETIME_MS = 8 * 3_600_000;

export class AdminSessions {
  readonly #store: Pick<RecordStore, 'auditRecords' | 'change'>;
  readonly #audit: AuditWriter;

  constructor(store: Pick<RecordStore, 'auditRecords' | 'change'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#audit = new AuditWriter(store, clock);
  }

  /** Records a login. @throws {Refusal} `unavailable` when it cannot be recorded; then the login has failed. */
  async begin(caller: Caller): Promise<AdminSession> {
    const id = randomUUID();
    await this.#audit.recordSuccess({ action: 'admin.login', details: { session: id } }, caller);
    return this.session(id);
  }

  /** @throws {Refusal} `not_found` for an unknown session; `unavailable`. */
  async session(id: string): Promise<AdminSession> {
    const [begun, ended] = await Promise.all([this.#recordOf('admin.login', id), this.#recordOf('admin.logout', id)]);
    if (!begun) throw new Refusal('not_found', 'session not found');
    return {
      id,
      begunAtMs: begun.timeMs,
      endedAtMs: ended?.timeMs ?? null,
      expiresAtMs: begun.timeMs + MAX_LIFETIME_MS,
      actor: 'admin',
      name: null,
      role: null,
    };
  }

  /**
   * Idempotent. `expect` throws a refusal if this state of the session must not be ended. It needs no lock: the only change of a session
   * is its end, so that two that are made at the same time have one result.
   *
   * @throws {Refusal} as `session` does.
   */
  async end(id: string, caller: Caller, expect?: (before: AdminSession) => void): Promise<AdminSession> {
    const session = await this.session(id);
    expect?.(session);
    if (session.endedAtMs !== null) return session;
    await this.#audit.recordSuccess({ action: 'admin.logout', details: { session: id } }, caller);
    return this.session(id);
  }

  async #recordOf(action: 'admin.login' | 'admin.logout', id: string): Promise<AuditRecord | undefined> {
    const { rows } = await orUnavailable(
      this.#store.auditRecords({ action, outcome: 'success', text: id }, { limit: 1, after: null }),
    );
    return rows[0];
  }
}
