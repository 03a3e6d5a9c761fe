/** Operators: callers of the management API with a role, and a secret of their own. */
import { randomUUID } from 'node:crypto';
import type { Admission } from './admission.js';
import type { Caller } from './audit.js';
import { revocationBy } from './audit.js';
import { AuditWriter } from './audit-writer.js';
import { actorOfOperator, type Authority, authorityOfOperator } from './authority.js';
import { Changes, type DoneRecord } from './changes.js';
import type { ChangeTransaction, Clock, Grants, Operator, PageOf, PageRequest, RecordStore } from './ports.js';
import { orUnavailable, projectNotFound, Refusal } from './refusal.js';
import { digestOf, isWellFormedSecretOf, mintSecretOf, obfuscate } from './token.js';

/** What of an operator can be changed. */
interface Terms extends Grants {
  /** When its secret ends by itself; null: never. */
  expiresAtMs: number | null;
}

export interface OperatorDraft extends Terms {
  name: string;
}

/** Undefined fields stay unchanged. */
export type OperatorChanges = {
  [Name in keyof Terms | 'isActive']?: (Terms & { isActive: boolean })[Name] | undefined;
};

/** The fields that can be changed, under their names in the API and the audit log. */
const FIELDS = {
  role: 'role',
  projects: 'projects',
  expires_at: 'expiresAtMs',
  ceilings: 'ceilings',
  is_active: 'isActive',
} as const satisfies Record<string, keyof OperatorChanges>;

export interface OperatorsOptions {
  store: Pick<RecordStore, 'access' | 'change' | 'names'>;
  admission: Pick<Admission, 'apply' | 'accounts'>;
  clock: Clock;
}

const notFound = () => new Refusal('not_found', 'operator not found');
const nameTaken = (cause: Error) => new Refusal('name_taken', 'an operator of this name exists already', { cause });

export class Operators {
  readonly #store: OperatorsOptions['store'];
  readonly #clock: Clock;
  readonly #changes: Changes;

  constructor({ store, admission, clock }: OperatorsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#changes = new Changes(store, admission, clock, new AuditWriter(store, clock));
  }

  /** @returns the operator and its secret, which is not stored anywhere. */
  async create(draft: OperatorDraft, caller: Caller): Promise<{ operator: Operator; secret: string }> {
    const secret = mintSecretOf('operator');
    const now = this.#clock.now();
    const operator: Operator = {
      ...draft,
      id: randomUUID(),
      isActive: true,
      createdAtMs: now,
      updatedAtMs: now,
      lastUsedAtMs: null,
      obfuscated: obfuscate(secret),
    };
    const { id, name, role, projects, ceilings, expiresAtMs, obfuscated } = operator;
    const details = {
      name,
      role,
      ...(projects && { projects }),
      ...(ceilings && { ceilings }),
      ...(expiresAtMs !== null && { expires_at: isoTime(expiresAtMs) }),
    };
    const subject = { action: 'operator.create', obfuscated, details } as const;
    await this.#checkProjects(projects);
    await this.#changes.make({ subject, caller, taken: nameTaken }, async (tx) => {
      await tx.access.insertOperator({ ...operator, digest: digestOf(secret) });
      const audit = { ...subject, details: { ...details, operator: id } };
      return { value: undefined, records: [{ audit }] };
    });
    return { operator, secret };
  }

  /** @throws {Refusal} `not_found` */
  async operator(id: string): Promise<Operator> {
    const operator = await orUnavailable(this.#store.access.operator(id));
    if (!operator) throw notFound();
    return operator;
  }

  operators(page: PageRequest): Promise<PageOf<Operator>> {
    return orUnavailable(this.#store.access.operators(page));
  }

  /**
   * Ends the sessions of the operator. If it is deactivated, also the tokens that it has issued, with their requests in flight, in the same
   * transaction.
   *
   * @param keepTokens leaves its tokens as they are.
   * @param expect throws a refusal if the change must not be made to this state.
   */
  async update(
    id: string,
    changes: OperatorChanges,
    caller: Caller,
    { keepTokens, expect }: { keepTokens: boolean; expect?: (before: Operator) => void },
  ): Promise<{ operator: Operator; revokedCount: number }> {
    const isDeactivation = changes.isActive === false;
    const action = isDeactivation ? 'operator.deactivate' : 'operator.update';
    await this.#checkProjects(changes.projects ?? null);
    return this.#changes.make({ subject: { action, details: { operator: id } }, caller }, async (tx) => {
      const before = await tx.access.lockOperator(id);
      if (!before) throw notFound();
      expect?.(before);
      const now = this.#clock.now();
      const operator = applied(before, changes, now);
      await tx.access.updateOperator(operator);
      await tx.access.endSessionsOf(id, now);
      const revoked = isDeactivation && !keepTokens ? await this.#revokeTokensOf(before, tx, caller) : [];
      const details = { operator: id, name: before.name, ...difference(before, operator, changes) };
      const { obfuscated } = before;
      const count = isDeactivation ? revoked.length : null;
      return {
        value: { operator, revokedCount: revoked.length },
        records: [{ audit: { action, obfuscated, count, details } }, ...revoked],
      };
    });
  }

  /** @returns one record for each token. */
  async #revokeTokensOf({ id, name }: Operator, tx: ChangeTransaction, caller: Caller): Promise<DoneRecord[]> {
    const now = this.#clock.now();
    const tokens = await tx.access.revokeTokensOf(actorOfOperator(name), now, revocationBy(caller, now));
    return tokens.map(({ id: tokenId, projectId, obfuscated }) => ({
      audit: {
        action: 'token.revoke',
        tokenId,
        projectId,
        obfuscated,
        details: { is_active: [true, false], operator: id },
      },
      change: { kind: 'token.revoked', projectId, tokenId },
    }));
  }

  /** Projects are never deleted, so those that exist now will exist. @throws {Refusal} `not_found` */
  async #checkProjects(ids: readonly string[] | null): Promise<void> {
    if (ids === null) return;
    const { projects } = await orUnavailable(this.#store.names([], ids));
    if (ids.some((id) => !projects.has(id))) throw projectNotFound();
  }

  /** The operator of a secret, whether it is active or not; null if there is none. Guesses without the right checksum never reach the database. */
  async ofSecret(secret: string): Promise<Operator | null> {
    if (!isWellFormedSecretOf('operator', secret)) return null;
    return orUnavailable(this.#store.access.operatorByDigest(digestOf(secret)));
  }

  /** What an operator may do now, whose use it notes. @returns null if it is deactivated or has expired. */
  authorityOf(operator: Operator): Authority | null {
    const now = this.#clock.now();
    const authority = authorityOfOperator(operator, now);
    // Nobody waits for it, and the next request tries again.
    if (authority && isLongAgo(operator.lastUsedAtMs, now)) {
      this.#store.access.noteUse(operator.id, now).catch(() => undefined);
    }
    return authority;
  }
}

const MINUTE_MS = 60_000;
const isLongAgo = (atMs: number | null, now: number) => atMs === null || now - atMs >= MINUTE_MS;

const isoTime = (ms: number) => new Date(ms).toISOString();

function applied(before: Operator, changes: OperatorChanges, now: number): Operator {
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  // Later than before, so that no two versions have the same time.
  return { ...before, ...given, updatedAtMs: Math.max(now, before.updatedAtMs + 1) };
}

/** Old and new values of the fields in the request. */
function difference(before: Operator, after: Operator, asked: OperatorChanges): Record<string, unknown> {
  const pairs: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(FIELDS)) {
    if (asked[field] === undefined) continue;
    const values = [before[field], after[field]];
    pairs[name] = field === 'expiresAtMs' ? values.map((ms) => (ms === null ? null : isoTime(Number(ms)))) : values;
  }
  return pairs;
}
