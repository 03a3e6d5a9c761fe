/** Who calls the management API, and what that allows. */
import { type Extent, extentOf, type Permission } from '../api/permissions.js';
import type { AuditActor, Ceilings, Role } from '../api/vocabulary.js';
import type { Caller } from './audit.js';
import type { Operator, Scope, Selection, SessionRow } from './ports.js';
import { Refusal } from './refusal.js';

export type { Scope } from './ports.js';

/** A caller who is not the holder of the management token: an operator, or a person whom the company's identity provider knows. */
export interface Authority {
  /** In the audit log and in `issued_by`: `operator:<name>`, `person:<issuer>#<sub>`. */
  actor: Caller['actor'];
  /** For people to read: the operator's name, or the person's. */
  name: string;
  role: Role;
  /** IDs; null: all projects, also future ones. */
  projects: readonly string[] | null;
  /** For the tokens that it issues; null: none. */
  ceilings: Ceilings | null;
  /** When it ends, in ms since the epoch; null: never. */
  expiresAtMs: number | null;
  /** What it comes from, which must still be so when it issues a token. */
  source: AuthoritySource;
}

export interface AuthoritySource {
  /** The operator, as it was read; null for a person. */
  operator: Pick<Operator, 'id' | 'updatedAtMs'> | null;
  /** ID; null for the secret of an operator. */
  sessionId: string | null;
}

/** @returns null if the operator is deactivated or has expired. */
export function authorityOfOperator(operator: Operator, nowMs: number): Authority | null {
  const { id, name, role, projects, ceilings, isActive, expiresAtMs, updatedAtMs } = operator;
  if (!isActive || (expiresAtMs !== null && nowMs >= expiresAtMs)) return null;
  const source = { operator: { id, updatedAtMs }, sessionId: null };
  return { actor: actorOfOperator(name), name, role, projects, ceilings, expiresAtMs, source };
}

export const actorOfOperator = (name: string) => `operator:${name}` as const;

/**
 * @param mapping SHA-256 of the mapping of roles that is in force, in hex; null if there is none.
 * @returns null for the holder of the management token.
 */
export function authorityOfSession(
  { session, operator }: SessionRow,
  mapping: string | null,
  nowMs: number,
): Authority | EndedSession | null {
  const { id: sessionId, actor, name, role, projects, ceilings, operatorId, expiresAtMs, endedAtMs } = session;
  if (endedAtMs !== null) return { why: operator ? changeOf(operator, endedAtMs) : LOGGED_OUT };
  if (nowMs >= expiresAtMs) return { why: 'it has lasted as long as it may' };
  if (operatorId !== null) {
    const authority = operator && authorityOfOperator(operator, nowMs);
    if (!authority) return { why: operator ? changeOf(operator, nowMs) : 'there is no such operator' };
    return { ...authority, expiresAtMs, source: { ...authority.source, sessionId } };
  }
  if (role === null) return null;
  if (session.mapping !== mapping) return { why: 'the roles of people were changed' };
  const source = { operator: null, sessionId };
  return { actor, name: name ?? actor, role, projects, ceilings, expiresAtMs, source };
}

/** Why a session has ended. Completes `the session has ended, because …`. */
export interface EndedSession {
  why: string;
}

const LOGGED_OUT = 'you have logged out';

/** What of an operator has ended a session. */
function changeOf({ name, isActive, updatedAtMs }: Operator, endedAtMs: number): string {
  if (!isActive) return `the operator ${name} was deactivated`;
  return updatedAtMs >= endedAtMs ? `the operator ${name} was changed` : LOGGED_OUT;
}

export const EVERYTHING: Scope = { projects: null, issuedBy: null };

/**
 * @param authority null: the holder of the management token.
 * @throws {Refusal} `not_permitted`
 */
export function scopeFor(authority: Authority | null, permission: Permission): Scope {
  if (authority === null) return EVERYTHING;
  const { role, projects, actor } = authority;
  const extent = extentOf(role, permission);
  if (extent === null) throw notPermitted(`the role ${role} may not ${permission}`);
  return SCOPES[extent](projects, actor);
}

const SCOPES: Record<Extent, (projects: Scope['projects'], actor: AuditActor) => Scope> = {
  own: (projects, issuedBy) => ({ projects, issuedBy }),
  projects: (projects) => ({ projects, issuedBy: null }),
  instance: (projects) => {
    if (projects !== null) throw concernsAll();
    return EVERYTHING;
  },
  all: () => EVERYTHING,
};

export const notPermitted = (why: string) => new Refusal('not_permitted', `not permitted: ${why}`);

/** For callers who are limited to some projects, or to their tokens. */
export const concernsAll = () => notPermitted('it concerns all projects and tokens, and you may not see all of them');

export const isInScope = (scope: Scope, of: { projectId: string; issuedBy?: AuditActor | null }): boolean =>
  hasProject(scope, of.projectId) && (scope.issuedBy === null || scope.issuedBy === of.issuedBy);

export const hasProject = ({ projects }: Pick<Scope, 'projects'>, projectId: string): boolean =>
  projects === null || projects.includes(projectId);

export const isEverything = ({ projects, issuedBy }: Scope): boolean => projects === null && issuedBy === null;

/** @returns the part of the wanted projects that is in scope; undefined: all projects; null: none. */
export function projectsWithin(
  { projects }: Scope,
  wanted: Selection<string> | undefined,
): Selection<string> | undefined | null {
  if (projects === null) return wanted;
  const among = projects.filter((id) => wanted === undefined || wanted.among.includes(id) !== wanted.isExcluded);
  return among.length === 0 ? null : { among, isExcluded: false };
}

/** For what belongs to projects and not to tokens, such as audit records: nobody may read that of some tokens only. */
export function projectsOf({ projects, issuedBy }: Scope): Scope['projects'] {
  if (issuedBy !== null) throw notPermitted('it does not belong to single tokens');
  return projects;
}
