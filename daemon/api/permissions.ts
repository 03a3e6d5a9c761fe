/**
 * Who may do what in the management API. Each operation declares one of these permissions (operation.ts), the daemon enforces it, and
 * front ends show what a role may do. The holder of the management token may do everything.
 */
import type { Role } from './vocabulary.js';

/**
 * What an operation may concern. `own`: tokens that the caller has issued, or its session. `projects`: the caller's projects, with all that belongs to them.
 * `instance`: the daemon as a whole, so only callers that are not limited to some projects may do it. `all`: it does not belong to a project.
 */
export type Extent = 'own' | 'projects' | 'instance' | 'all';

/** Extents by role. A role that is missing may not do it. */
export type Grant = Readonly<Partial<Record<Role, Extent>>>;

const everybody = (extent: Extent): Grant => ({
  viewer: extent,
  auditor: extent,
  issuer: extent,
  operator: extent,
  admin: extent,
});

export const PERMISSIONS = {
  /** To read and to end it. */
  'use the own session': everybody('own'),
  /** About the caller or this API. */
  'know the API': everybody('all'),
  'read the status': { ...everybody('projects'), issuer: 'own' },
  /** What is counted over all requests. */
  'read all figures': { viewer: 'instance', auditor: 'instance', operator: 'instance', admin: 'instance' },
  /** With the figures of what one may see. */
  'read projects': { ...everybody('projects'), issuer: 'own' },
  'change projects': { admin: 'projects' },
  'create projects': { admin: 'instance' },
  'read tokens': { ...everybody('projects'), issuer: 'own' },
  'issue tokens': { issuer: 'own', operator: 'projects', admin: 'projects' },
  'revoke tokens': { issuer: 'own', operator: 'projects', admin: 'projects' },
  /** To change one at all. Who may not change tokens may only revoke it. */
  'revoke or change tokens': { issuer: 'own', operator: 'projects', admin: 'projects' },
  'change tokens': { operator: 'projects', admin: 'projects' },
  'read usage': { ...everybody('projects'), issuer: 'own' },
  'read prices': everybody('all'),
  'read the audit log': { auditor: 'projects', admin: 'projects' },
  'read events': { auditor: 'projects', admin: 'projects' },
  'undo changes': { operator: 'projects', admin: 'projects' },
  'read the cache': { operator: 'instance', admin: 'instance' },
  'purge the cache': { operator: 'projects', admin: 'projects' },
  'purge the whole cache': { operator: 'instance', admin: 'instance' },
  'read migrations': { admin: 'all' },
  'apply migrations': { admin: 'instance' },
  /** Operators, trusts, and sessions of others: only the holder of the management token. */
  'manage access': {},
} as const satisfies Record<string, Grant>;

/** `public`: without a credential. */
export type Permission = keyof typeof PERMISSIONS | 'public';

/** @param role null: the holder of the management token. @returns null if it may not. */
export function extentOf(role: Role | null, permission: Permission): Extent | null {
  if (role === null || permission === 'public') return 'all';
  const grant: Grant = PERMISSIONS[permission];
  return grant[role] ?? null;
}

/** Whether a caller may do it at all. What it may concern is another question. @param caller as in `/manage/self`. */
export function isPermitted(
  { role, projects }: { role: Role | null; projects: readonly string[] | null },
  permission: Permission,
): boolean {
  const extent = extentOf(role, permission);
  return extent !== null && (extent !== 'instance' || projects === null);
}
