/** Registry of projects and tokens. */
import { randomUUID } from 'node:crypto';
import type { Admission } from './admission.js';
import { Changes } from './changes.js';
import type { PurseCounts } from './budget/counts.js';
import { type Spent, spentOf } from './budget/spending.js';
import { EVERYTHING, hasProject, isInScope, projectsWithin } from './authority.js';
import { checkActiveTokens, checkPolicies, checkTerms, type Issuer, lockIssuer } from './ceilings.js';
import { auditRecord, type AuditSubject, type Caller, revocationBy, SYSTEM_CALLER } from './audit.js';
import type {
  Change,
  ChangeTransaction,
  Clock,
  NewToken,
  PageOf,
  PageRequest,
  ProjectChanges,
  ProjectFigures,
  ProjectFilter,
  RecordStore,
  Scope,
  StoredUpstream,
  TokenFilter,
  TokenRow,
  TokenSort,
} from './ports.js';
import { StoreConflict } from './ports.js';
import { applied, detailsOf, difference, kindOf, newProject, type ProjectDraft } from './project-drafts.js';
import { projectNotFound, orUnavailable, Refusal } from './refusal.js';
import {
  digestOf,
  isWellFormedSecret,
  mintSecret,
  NOT_REVOKED,
  obfuscate,
  type Project,
  stateOf,
  type Token,
  type TokenState,
  type TokenTerms,
  TERM_NAMES,
  UNUSED,
  withUnsettled,
} from './token.js';
import { AuditWriter } from './audit-writer.js';
import type { PriceLists } from './cost/costs.js';
import {
  DEFAULT_DURATION_HOURS,
  MS_PER_UNIT,
  POLICY_NAMES,
  type Policies,
  type PolicyChanges,
} from '../api/vocabulary.js';

export const DEFAULT_LIFETIME_MS = DEFAULT_DURATION_HOURS * MS_PER_UNIT.h;

export interface TokenDraft extends TokenTerms, Policies {
  lifetimeMs: number;
  /** ID of the token whose terms were used, for the audit record. */
  like?: string | undefined;
}

export type { Issuer };

/** A token that is not issued on request of an operator. */
export interface Issuing {
  action: 'token.exchange';
  /** For the audit record, in addition to the terms. */
  details: Record<string, unknown>;
  /** Called first in the transaction. What it throws ends it. */
  begin: (tx: ChangeTransaction) => Promise<void>;
}

export interface RegistryOptions {
  /** Origin of UPSTREAM_BASE_URL. */
  defaultOrigin: string;
  /** Called after the upstream key or the base URL of a project was changed. */
  onUpstreamChanged: (projectId: string) => void;
}

/** Changes to a token; undefined fields stay unchanged. */
export interface TokenChanges extends PolicyChanges {
  isActive?: boolean | undefined;
}

/** Action and kind of a change of a token. Revocation and reactivation take precedence: a revocation ends requests in flight. */
const TOKEN_CHANGES = {
  update: ['token.update', 'token.updated'],
  revoke: ['token.revoke', 'token.revoked'],
  reactivate: ['token.reactivate', 'token.reactivated'],
} as const;

/** Throws a refusal if a change must not be made to this state. Called in the change's transaction, with what it has locked. */
export type Expectation<T> = (before: T, tx: ChangeTransaction) => void | Promise<void>;

/** A project for display. */
export type ShownProject = Project & ProjectFigures & { spent: Spent };

const UNUSED_PROJECT: ProjectFigures = {
  tokenCount: 0,
  activeTokenCount: 0,
  lastUsedAtMs: null,
  requests24h: 0,
  errors24h: 0,
};

/** A token for display: with the name of its project, uses not yet written to the database, the resulting state, and what it has spent. */
export interface ShownToken extends Token {
  projectName: string;
  state: TokenState;
  spent: Spent;
}

export interface IssuedToken {
  token: ShownToken;
  secret: string;
}

/** Result of a change: the value for the caller, the change for other instances, and the audit record's subject. */
interface Done<T> {
  value: T;
  change: Change;
  audit: AuditSubject;
}

const tokenNotFound = () => new Refusal('not_found', 'token not found');

export class Registry {
  /** Requests to the management API that a role or a ceiling did not allow, by code: also reads, which are not recorded. */
  readonly refusals = { not_permitted: 0, beyond_ceiling: 0 };
  readonly #store: RecordStore;
  readonly #admission: Admission;
  readonly #clock: Clock;
  readonly #defaultOrigin: string;
  readonly #onUpstreamChanged: (projectId: string) => void;
  readonly #audit: AuditWriter;
  readonly #changes: Changes;

  constructor(
    store: RecordStore,
    admission: Admission,
    clock: Clock,
    { defaultOrigin, onUpstreamChanged }: RegistryOptions,
  ) {
    this.#store = store;
    this.#admission = admission;
    this.#clock = clock;
    this.#defaultOrigin = defaultOrigin;
    this.#onUpstreamChanged = onUpstreamChanged;
    this.#audit = new AuditWriter(store, clock);
    this.#changes = new Changes(store, admission, clock, this.#audit);
  }

  // ---- projects

  async createProject(draft: ProjectDraft, caller: Caller): Promise<ShownProject> {
    const project = newProject(draft, this.#clock.now());
    const details = detailsOf(project, draft.keyCheck);
    const attempt = { action: 'project.create', projectId: project.id, details } as const;
    return this.#change({ ...attempt, projectId: null }, caller, async (tx) => {
      await tx.insertProject({ ...project, upstreamKey: draft.upstreamKey });
      return {
        value: { ...project, ...UNUSED_PROJECT, spent: this.#spent(undefined, project) },
        change: change('project.created', project.id),
        audit: attempt,
      };
    });
  }

  async updateProject(
    id: string,
    changes: ProjectChanges,
    caller: Caller,
    scope: Scope,
    expect?: Expectation<Project>,
  ): Promise<ShownProject> {
    const attempt = { action: 'project.update', projectId: id } as const;
    const updated = await this.#change(attempt, caller, async (tx) => {
      const before = hasProject(scope, id) ? await tx.lockProject(id) : null;
      if (!before) throw projectNotFound();
      await expect?.(before, tx);
      const after = applied(before, changes, this.#clock.now());
      if (changes.upstreamKey === undefined && this.#originOf(before) !== this.#originOf(after)) throw keyRequired();
      await tx.updateProject(after, changes.upstreamKey);
      return {
        value: { ...after, spent: this.#spent(await tx.lockPurse(id), after) },
        change: change(kindOf(before, after), id),
        audit: { ...attempt, details: difference(before, after, changes) },
      };
    });
    const { upstreamKey, upstreamBaseUrl } = changes;
    if (upstreamKey !== undefined || upstreamBaseUrl !== undefined) this.#onUpstreamChanged(id);
    const [shown = { ...updated, ...UNUSED_PROJECT }] = await this.#withFigures([updated], scope);
    return shown;
  }

  #originOf({ upstreamBaseUrl }: Project): string {
    return upstreamBaseUrl === null ? this.#defaultOrigin : new URL(upstreamBaseUrl).origin;
  }

  /** Records that a key was refused, or could not be checked. @param projectId null for a new project, whose name is in `details`. */
  async recordKeyRefusal(
    projectId: string | null,
    details: { name?: string | undefined },
    { message }: Refusal,
    caller: Caller,
  ): Promise<void> {
    const action = projectId === null ? 'project.create' : 'project.update';
    await this.#audit.recordRefusal({ action, projectId, details }, caller, message);
  }

  /** Records that the role of the caller does not allow a change. @param operation its method and path. @param id in the path; null if there is none. */
  async recordNotPermitted(operation: string, id: string | null, { message }: Refusal, caller: Caller): Promise<void> {
    const details = { operation, ...(id !== null && { id }) };
    await this.#audit.recordRefusal({ action: 'management.denied', details }, caller, message);
  }

  async project(id: string, scope: Scope): Promise<ShownProject> {
    const project = await this.projectBefore(id, scope);
    const [shown] = project ? await this.#withFigures(await this.#withSpent([project], scope), scope) : [];
    if (!shown) throw projectNotFound();
    return shown;
  }

  /** What a change would begin with. @returns null if there is no such project. */
  async projectBefore(id: string, scope: Scope): Promise<Project | null> {
    return hasProject(scope, id) ? orUnavailable(this.#store.project(id)) : null;
  }

  /** The upstream with its key, to check it with the provider. */
  async storedUpstream(id: string, scope: Scope): Promise<StoredUpstream> {
    const upstream = hasProject(scope, id) ? await orUnavailable(this.#store.upstream(id)) : null;
    if (!upstream) throw projectNotFound();
    return upstream;
  }

  /** With the figures of what is in scope. */
  async projects(filter: ProjectFilter, page: PageRequest, scope: Scope): Promise<PageOf<ShownProject>> {
    const found = await orUnavailable(this.#store.projects({ ...filter, ids: scope.projects ?? undefined }, page));
    return { ...found, rows: await this.#withFigures(await this.#withSpent(found.rows, scope), scope) };
  }

  /** With what the tokens in scope have spent. */
  async #withSpent(projects: readonly Project[], { issuedBy }: Scope): Promise<(Project & { spent: Spent })[]> {
    const now = this.#clock.now();
    if (issuedBy !== null) {
      const purses = await orUnavailable(this.#store.pursesOfIssuer(issuedBy, now));
      // Without what is not settled yet, which is counted for the whole project.
      return projects.map((it) => ({ ...it, spent: spentOf(purses.get(it.id), undefined, it, now) }));
    }
    const read = () => this.#store.purses(projects.map(({ id }) => id));
    const purses = await orUnavailable(this.#admission.readBetweenTicks(read));
    return projects.map((it) => ({ ...it, spent: this.#spent(purses.get(it.id), it) }));
  }

  /** With the figures of what is in scope. */
  async #withFigures(projects: readonly (Project & { spent: Spent })[], { issuedBy }: Scope): Promise<ShownProject[]> {
    const ids = projects.map(({ id }) => id);
    const figures = await orUnavailable(this.#store.projectFigures(ids, this.#clock.now(), issuedBy));
    return projects.map((it) => ({ ...it, ...(figures.get(it.id) ?? UNUSED_PROJECT) }));
  }

  #spent(purse: PurseCounts | null | undefined, of: Project | Omit<NewToken, 'digest'>): Spent {
    return spentOf(purse, this.#admission.purses.known(of.id), of, this.#clock.now());
  }

  /** Records the attempt. `id` is null if it is not a valid ID: it might be a secret in the wrong place. */
  async refuseProjectDeletion(id: string | null, caller: Caller): Promise<never> {
    const reason = 'projects cannot be deleted; deactivate instead';
    await this.#audit.recordRefusal({ action: 'project.delete_refused', projectId: id }, caller, reason);
    throw new Refusal('method_not_allowed', reason, { allow: 'GET, PATCH, HEAD, OPTIONS' });
  }

  // ---- tokens

  /** @returns the token and its secret, which is not stored anywhere. */
  async issueToken(
    draft: TokenDraft,
    caller: Caller,
    issuer: Issuer = null,
    issuing: Issuing | null = null,
  ): Promise<IssuedToken> {
    try {
      return await this.#issueToken(draft, mintSecret(), caller, issuer, issuing);
    } catch (error) {
      // The secret or ID is already in use. If it happens twice in a row, it is not a coincidence.
      if (!(error instanceof StoreConflict)) throw error;
      return this.#issueToken(draft, mintSecret(), caller, issuer, issuing);
    }
  }

  async #issueToken(
    { lifetimeMs, like, ...terms }: TokenDraft,
    secret: string,
    caller: Caller,
    issuer: Issuer,
    issuing: Issuing | null,
  ): Promise<IssuedToken> {
    const now = this.#clock.now();
    const issued: Omit<NewToken, 'digest'> = {
      ...terms,
      id: randomUUID(),
      isActive: true,
      expiresAtMs: now + lifetimeMs,
      createdAtMs: now,
      issuedBy: issuer?.actor ?? null,
      issuedByName: issuer?.name ?? null,
      obfuscated: obfuscate(secret),
    };
    const attempt = {
      action: issuing?.action ?? 'token.create',
      projectId: terms.projectId,
      details: {
        name: terms.name,
        duration_minutes: lifetimeMs / 60_000,
        ...audited(terms),
        ...(terms.allow && { allow: terms.allow }),
        ...(terms.limits && { limits: terms.limits }),
        ...(terms.budget && { budget: terms.budget }),
        ...(like !== undefined && { like }),
        ...issuing?.details,
      },
    } as const;
    const digest = digestOf(secret);
    const projectName = await this.#change(attempt, caller, async (tx) => {
      await issuing?.begin(tx);
      await lockIssuer(issuer, tx);
      if (!hasProject({ projects: issuer?.projects ?? null }, terms.projectId)) throw projectNotFound();
      if (issuer?.ceilings) checkTerms(issuer.ceilings, { ...terms, lifetimeMs });
      await checkActiveTokens(issuer, tx, now);
      const project = await tx.lockProject(terms.projectId);
      if (!project) throw projectNotFound();
      if (!project.isActive) {
        throw new Refusal('token_for_inactive_project', 'cannot generate tokens for inactive project');
      }
      await tx.insertToken({ ...issued, digest });
      return {
        value: project.name,
        change: change('token.created', project.id, issued.id),
        audit: { ...attempt, tokenId: issued.id, obfuscated: issued.obfuscated },
      };
    });
    await this.#admission.accounts.preload(digest);
    const spent = this.#spent(undefined, issued);
    return { token: { ...issued, ...UNUSED, ...NOT_REVOKED, projectName, state: 'active', spent }, secret };
  }

  /** The holder of a token ends it. */
  endToken(id: string, request: Pick<Caller, 'requestId' | 'clientIp'>): Promise<ShownToken> {
    const caller = { ...SYSTEM_CALLER, ...request, actor: 'token', reason: 'ended by its holder' } as const;
    return this.revokeToken(id, caller, EVERYTHING);
  }

  revokeToken(id: string, caller: Caller, scope: Scope, expect?: Expectation<Token>): Promise<ShownToken> {
    return this.updateToken(id, { isActive: false }, caller, scope, expect);
  }

  reactivateToken(id: string, caller: Caller, scope: Scope, expect?: Expectation<Token>): Promise<ShownToken> {
    return this.updateToken(id, { isActive: true }, caller, scope, expect);
  }

  /**
   * Idempotent, and recorded each time: revoking a revoked token must not fail. It leaves the first revocation as it is.
   *
   * @param changes undefined fields stay unchanged.
   * @param by whose ceilings the token must be within.
   */
  async updateToken(
    id: string,
    { isActive, ...policies }: TokenChanges,
    caller: Caller,
    scope: Scope,
    expect?: Expectation<Token>,
    by: Issuer = null,
  ): Promise<ShownToken> {
    const [action, kind] = TOKEN_CHANGES[isActive === undefined ? 'update' : isActive ? 'reactivate' : 'revoke'];
    const attempt = { action, tokenId: id } as const;
    const { row, purse } = await this.#change(attempt, caller, async (tx) => {
      if (isActive) await lockIssuer(by, tx);
      if (by?.ceilings) checkPolicies(by.ceilings, policies);
      // So that a revocation of all tokens of the project is either before the reactivation or after it.
      if (isActive) await tx.lockProjectOf(id);
      const found = await tx.lockToken(id);
      if (!found || !isInScope(scope, found.token)) throw tokenNotFound();
      const { token } = found;
      await expect?.(token, tx);
      const isOwn = by !== null && token.issuedBy === by.actor;
      if (isActive && !token.isActive && isOwn) await checkActiveTokens(by, tx, this.#clock.now());
      const details: Record<string, unknown> = isActive === undefined ? {} : { is_active: [token.isActive, isActive] };
      const changed = { ...token };
      if (isActive !== undefined && token.isActive !== isActive) {
        const revocation = isActive ? NOT_REVOKED : revocationBy(caller, this.#clock.now());
        await (isActive ? tx.reactivateToken(id) : tx.revokeToken(id, revocation));
        Object.assign(changed, { isActive, ...revocation });
      }
      const given = POLICY_NAMES.filter((name) => policies[name] !== undefined);
      for (const name of given) {
        details[name] = [token[name], policies[name]];
        Object.assign(changed, { [name]: policies[name] });
      }
      if (given.length > 0) await tx.restrictToken(id, changed, this.#clock.now());
      return {
        value: { row: { ...found, token: changed }, purse: await tx.lockPurse(id) },
        change: change(kind, token.projectId, id),
        audit: { ...attempt, projectId: token.projectId, obfuscated: token.obfuscated, details },
      };
    });
    return this.#shown(row, purse);
  }

  /** @returns the number of tokens revoked. */
  async revokeTokensOf(projectId: string, caller: Caller, scope: Scope): Promise<number> {
    const attempt = { action: 'token.revoke_all', projectId } as const;
    return this.#change(attempt, caller, async (tx) => {
      if (!hasProject(scope, projectId) || !(await tx.lockProject(projectId))) throw projectNotFound();
      const count = await tx.revokeTokensOf(projectId, revocationBy(caller, this.#clock.now()));
      return { value: count, change: change('tokens.revoked', projectId), audit: { ...attempt, count } };
    });
  }

  async token(id: string, scope: Scope): Promise<ShownToken> {
    return this.#found(() => this.#store.token(id), scope);
  }

  async tokenOfSecret(secret: string, scope: Scope): Promise<ShownToken> {
    if (!isWellFormedSecret(secret)) throw tokenNotFound();
    return this.#found(() => this.#store.tokenByDigest(digestOf(secret)), scope);
  }

  async tokens(asked: TokenFilter, sort: TokenSort, page: PageRequest, scope: Scope): Promise<PageOf<ShownToken>> {
    const projects = projectsWithin(scope, asked.projects);
    const issuedBy = scope.issuedBy ?? asked.issuedBy;
    const isOfOthers = asked.issuedBy !== undefined && asked.issuedBy !== issuedBy;
    if (projects === null || isOfOthers) return { rows: [], next: null, total: 0 };
    const filter = { ...asked, projects, issuedBy };
    const read = async () => {
      const found = await this.#store.tokens(filter, sort, page, this.#clock.now());
      return { found, purses: await this.#store.purses(found.rows.map(({ token }) => token.id)) };
    };
    const { found, purses } = await orUnavailable(this.#admission.readBetweenTicks(read));
    return { ...found, rows: found.rows.map((row) => this.#shown(row, purses.get(row.token.id))) };
  }

  async #found(find: () => Promise<TokenRow | null>, scope: Scope): Promise<ShownToken> {
    const read = async () => {
      const row = await find();
      return row && isInScope(scope, row.token) && { row, purses: await this.#store.purses([row.token.id]) };
    };
    const found = await orUnavailable(this.#admission.readBetweenTicks(read));
    if (!found) throw tokenNotFound();
    return this.#shown(found.row, found.purses.get(found.row.token.id));
  }

  #shown({ token, projectName, projectIsActive }: TokenRow, purse: PurseCounts | null | undefined): ShownToken {
    const { uses, hits, lastUsedAtMs } = this.#admission.unsettled(token.id);
    const counted = withUnsettled(token, uses, hits, lastUsedAtMs);
    const state = stateOf(counted, projectIsActive, this.#clock.now());
    return { ...counted, projectName, state, spent: this.#spent(purse, token) };
  }

  /** Records that migrations were applied (elsewhere). */
  async recordMigrations(names: readonly string[], caller: Caller): Promise<void> {
    if (names.length === 0) return;
    await this.#audit.recordSuccess({ action: 'migrations.up', details: { names } }, caller);
  }

  /** Records in the audit log that the prices in force have changed: once, by the first instance that has them. */
  async recordPrices({ shipped, file }: PriceLists): Promise<void> {
    const details = {
      shipped: { source: shipped.source, date: shipped.date, sha256: shipped.sha256 },
      file: file && { entries: file.prices.length, sha256: file.sha256 },
    };
    const subject = { action: 'prices.change', details } as const;
    await this.#store.change(async (tx) => {
      if (!(await tx.notePrices(shipped.sha256, file?.sha256 ?? ''))) return;
      await tx.record(auditRecord(subject, SYSTEM_CALLER, 'success', this.#clock.now()));
    });
  }

  async #change<T>(
    subject: AuditSubject,
    caller: Caller,
    work: (tx: ChangeTransaction) => Promise<Done<T>>,
  ): Promise<T> {
    // The conflict of a new token is not one of names: `issueToken` tries again.
    const taken = subject.action.startsWith('project.') ? { taken: nameTaken } : {};
    return this.#changes.make({ subject, caller, ...taken }, async (tx) => {
      const { value, audit, change } = await work(tx);
      return { value, records: [{ audit, change }] };
    });
  }
}

/** Otherwise an operator, who cannot read keys, could have one sent to another server. */
const keyRequired = () =>
  new Refusal(
    'key_required',
    'the base URL leads to another host, which must not get the stored key: give api_key, too',
  );

const nameTaken = (cause: Error) => new Refusal('name_taken', 'a project of this name exists already', { cause });

function change(kind: Change['kind'], projectId: string, tokenId: string | null = null): Change {
  return { kind, projectId, tokenId };
}

/** Terms of a token under their names in the audit log. */
const audited = (terms: TokenTerms): Record<string, unknown> =>
  Object.fromEntries(Object.entries(TERM_NAMES).map(([term, name]) => [name, terms[term as keyof TokenTerms]]));
