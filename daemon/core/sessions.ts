/**
 * Log-ins to the Admin UI. Its pages hold a session in a sealed cookie, which tells on every instance who it is without anything being
 * kept. What a cookie cannot know is that its session was ended elsewhere, and that is what is asked for here.
 *
 * **The audit log is what remembers.** That somebody logged in or out is recorded anyway, in every database and for good, with the
 * session's id among its words: so a session has ended, on every instance and from the moment its log-out is committed, if there is a
 * record that says so. No table of its own that would have to be swept, and nothing to hear of from other instances. It costs two
 * look-ups in an index for each page.
 */
import { randomUUID } from 'node:crypto';
import type { AuditRecord, Caller } from './audit.js';
import type { Clock, RecordStore } from './ports.js';
import { reading, Refusal } from './refusal.js';
import { Trail } from './trail.js';

export interface Session {
  id: string;
  begunAtMs: number;
  /** Null while it goes on. That it ends by itself, when nobody uses it, is a matter of those who hold it. */
  endedAtMs: number | null;
}

export class Sessions {
  readonly #store: Pick<RecordStore, 'auditRecords' | 'change'>;
  readonly #trail: Trail;

  constructor(store: Pick<RecordStore, 'auditRecords' | 'change'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#trail = new Trail(store, clock);
  }

  /** Somebody has logged in. @throws {Refusal} `unavailable` when that cannot be recorded, and then nobody has. */
  async begin(caller: Caller): Promise<Session> {
    const id = randomUUID();
    await this.#trail.done({ action: 'admin.login', details: { session: id } }, caller);
    return this.session(id);
  }

  /** @throws {Refusal} `not_found` for one that never began; `unavailable`. */
  async session(id: string): Promise<Session> {
    const [begun, ended] = await Promise.all([this.#recordOf('admin.login', id), this.#recordOf('admin.logout', id)]);
    if (!begun) throw new Refusal('not_found', 'session not found');
    return { id, begunAtMs: begun.timeMs, endedAtMs: ended?.timeMs ?? null };
  }

  /** To end one that has ended changes nothing, and succeeds. @throws {Refusal} as `session` does. */
  async end(id: string, caller: Caller): Promise<Session> {
    const session = await this.session(id);
    if (session.endedAtMs !== null) return session;
    await this.#trail.done({ action: 'admin.logout', details: { session: id } }, caller);
    return this.session(id);
  }

  async #recordOf(action: 'admin.login' | 'admin.logout', id: string): Promise<AuditRecord | undefined> {
    const { rows } = await reading(
      this.#store.auditRecords({ action, outcome: 'success', text: id }, { limit: 1, after: null }),
    );
    return rows[0];
  }
}
