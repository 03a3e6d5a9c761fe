/** Trusts: which JWTs of an issuer are exchanged for tokens of which project. Each change has its audit record in its transaction. */
import { randomUUID } from 'node:crypto';
import type { PolicyChanges } from '../api/vocabulary.js';
import type { Admission } from './admission.js';
import type { Caller } from './audit.js';
import { AuditWriter } from './audit-writer.js';
import { Changes } from './changes.js';
import { Pattern } from './policy/pattern.js';
import type { Clock, PageOf, PageRequest, RecordStore, ShownTrust, Trust } from './ports.js';
import { orUnavailable, projectNotFound, Refusal } from './refusal.js';

export type TrustTerms = Omit<Trust, 'id' | 'isActive' | 'createdAtMs' | 'updatedAtMs'>;
/** What is undefined has its default. */
export type TrustDraft = Pick<TrustTerms, 'issuer' | 'audience' | 'match' | 'projectId' | 'durationMinutes'> &
  Undefinable<TrustTerms> &
  PolicyChanges;
/** What is undefined stays as it is. */
export type TrustChanges = Undefinable<Omit<Trust, 'id' | 'issuer' | 'projectId' | 'createdAtMs' | 'updatedAtMs'>>;
type Undefinable<T> = { [Name in keyof T]?: T[Name] | undefined };

/** Without a template: what identifies the caller to the issuer. */
const DEFAULT_NAME = '{sub}';
/** Of one issuer: all of them are compared with each JWT. */
export const MAX_TRUSTS_OF_ISSUER = 1_000;

/** Claims about the JWT itself, and the one that any repository can have: with these alone, anybody whom the issuer serves would match. */
const NOT_IDENTIFYING: ReadonlySet<string> = new Set(['iss', 'aud', 'exp', 'nbf', 'iat', 'jti', 'ref']);

/** @throws {Refusal} `invalid_request` unless a claim identifies whom the trust is for. */
function checkIdentifying({ match }: Pick<Trust, 'match'>): void {
  const identifies = ([claim, value]: [string, string]) => !NOT_IDENTIFYING.has(claim) && new Pattern(value).isPlain;
  if (Object.entries(match).some(identifies)) return;
  throw new Refusal(
    'invalid_request',
    'match needs a claim that identifies the owner of the JWT, such as sub or repository, with an exact value; ' +
      'iss, aud, exp, nbf, iat, jti and ref do not, nor does a value with *',
  );
}

export const actorOf = ({ id }: Pick<Trust, 'id'>) => `trust:${id}` as const;

/** The fields of a trust under their names in the audit log. */
const AUDITED = {
  audience: 'audience',
  match: 'match',
  jwks_file: 'jwksFile',
  name: 'name',
  duration_minutes: 'durationMinutes',
  max_requests: 'maxRequests',
  allow: 'allow',
  limits: 'limits',
  budget: 'budget',
  max_active: 'maxActive',
  per_hour: 'perHour',
  is_active: 'isActive',
} as const satisfies Record<string, keyof TrustChanges>;
type AuditedName = keyof typeof AUDITED;
const AUDITED_NAMES = Object.keys(AUDITED) as AuditedName[];

const trustNotFound = () => new Refusal('not_found', 'trust not found');

export interface TrustsOptions {
  store: Pick<RecordStore, 'trusts' | 'change'>;
  admission: Pick<Admission, 'apply' | 'accounts'>;
  clock: Clock;
}

export class Trusts {
  readonly #store: TrustsOptions['store'];
  readonly #clock: Clock;
  readonly #changes: Changes;

  constructor({ store, admission, clock }: TrustsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#changes = new Changes(store, admission, clock, new AuditWriter(store, clock));
  }

  /** @throws {Refusal} `invalid_request` without an identifying claim; `not_found` for an unknown project. */
  async create({ issuer, audience, match, projectId, ...draft }: TrustDraft, caller: Caller): Promise<ShownTrust> {
    const now = this.#clock.now();
    const trust: Trust = {
      id: randomUUID(),
      issuer,
      audience,
      match,
      projectId,
      jwksFile: draft.jwksFile ?? null,
      name: draft.name ?? DEFAULT_NAME,
      durationMinutes: draft.durationMinutes,
      maxRequests: draft.maxRequests ?? 0,
      allow: draft.allow ?? null,
      limits: draft.limits ?? null,
      budget: draft.budget ?? null,
      maxActive: draft.maxActive ?? null,
      perHour: draft.perHour ?? null,
      isActive: true,
      createdAtMs: now,
      updatedAtMs: now,
    };
    const details = { trust: trust.id, issuer, ...withoutNulls(trust) };
    const attempt = { action: 'trust.create', projectId, details } as const;
    const subject = { ...attempt, projectId: null, details: { issuer } };
    return this.#changes.make({ subject, caller }, async (tx) => {
      checkIdentifying(trust);
      const project = await tx.lockProject(projectId);
      if (!project) throw projectNotFound();
      if ((await tx.trusts.countOf(issuer)) >= MAX_TRUSTS_OF_ISSUER) {
        throw new Refusal('invalid_request', `an issuer can have ${MAX_TRUSTS_OF_ISSUER} trusts: delete one of them`);
      }
      await tx.trusts.insert(trust);
      return { value: { ...trust, projectName: project.name }, records: [{ audit: attempt }] };
    });
  }

  /** @param expect throws a refusal if the trust must not be changed in this state. */
  update(
    id: string,
    changes: TrustChanges,
    caller: Caller,
    expect?: (before: ShownTrust) => void,
  ): Promise<ShownTrust> {
    const subject = { action: 'trust.update', details: { trust: id } } as const;
    return this.#changes.make({ subject, caller }, async (tx) => {
      const before = await tx.trusts.lock(id);
      if (!before) throw trustNotFound();
      expect?.(before);
      const given = Object.entries(changes).filter(([, value]) => value !== undefined);
      // Later than before, so that no two versions have the same time.
      const updatedAtMs = Math.max(this.#clock.now(), before.updatedAtMs + 1);
      const after: ShownTrust = { ...before, ...(Object.fromEntries(given) as Partial<Trust>), updatedAtMs };
      checkIdentifying(after);
      await tx.trusts.update(after);
      const changed = AUDITED_NAMES.filter((name) => changes[AUDITED[name]] !== undefined);
      const pairs = changed.map((name) => [name, [before[AUDITED[name]], after[AUDITED[name]]]]);
      const details = { trust: id, ...(Object.fromEntries(pairs) as Record<string, unknown>) };
      return { value: after, records: [{ audit: { ...subject, projectId: before.projectId, details } }] };
    });
  }

  /** @param expect throws a refusal if the trust must not be deleted in this state. */
  delete(id: string, caller: Caller, expect?: (before: ShownTrust) => void): Promise<void> {
    const subject = { action: 'trust.delete', details: { trust: id } } as const;
    return this.#changes.make({ subject, caller }, async (tx) => {
      const before = await tx.trusts.lock(id);
      if (!before) throw trustNotFound();
      expect?.(before);
      await tx.trusts.delete(id);
      const { projectId, issuer } = before;
      const details = { trust: id, issuer, ...withoutNulls(before) };
      return { value: undefined, records: [{ audit: { ...subject, projectId, details } }] };
    });
  }

  async trust(id: string): Promise<ShownTrust> {
    const trust = await orUnavailable(this.#store.trusts.one(id));
    if (!trust) throw trustNotFound();
    return trust;
  }

  /** The newest first. */
  trusts(page: PageRequest): Promise<PageOf<ShownTrust>> {
    return orUnavailable(this.#store.trusts.list(page));
  }
}

/** A trust for the audit record. */
const withoutNulls = (trust: Trust): Record<string, unknown> =>
  Object.fromEntries(
    AUDITED_NAMES.filter((name) => trust[AUDITED[name]] !== null).map((name) => [name, trust[AUDITED[name]]]),
  );
