/** The fields and columns of operators and of trusts, and what they may do in words. */
import type { WireOperator, WireTrust } from '../../daemon/api/contract.js';
import { counted, exact } from '../../daemon/api/formats.js';
import type { Ceilings, Role } from '../../daemon/api/vocabulary.js';
import { columnsOf, count, distance, ON_REQUEST, text } from './column.js';
import { allowShown, budgetShown, limitsShown } from './policies.js';

/** For forms: what a role may do. */
export const ROLE_TITLES: Readonly<Record<Role, string>> = {
  viewer: 'viewer: reads projects, tokens and usage',
  auditor: 'auditor: also reads the audit log and events',
  issuer: 'issuer: issues tokens, and revokes its own',
  operator: 'operator: everything with tokens',
  admin: 'admin: everything but operators and trusts',
};

/** Such as `24 h, 500 requests, 5 active tokens, models gpt-5-mini`. */
export function ceilingsShown(ceilings: Ceilings | null): string {
  if (ceilings === null) return 'none';
  const { hours, requests, active_tokens: tokens, routes, models, limits, budget } = ceilings;
  const all = [
    hours !== undefined && `${exact(hours)} h`,
    requests !== undefined && counted(requests, 'request'),
    tokens !== undefined && counted(tokens, 'active token'),
    (routes ?? models) !== undefined && allowShown({ routes, models }),
    limits !== undefined && limitsShown(limits),
    budget !== undefined && budgetShown(budget),
  ].filter((part) => part !== false);
  return all.length === 0 ? 'none' : all.join(', ');
}

// ---- operators

/** All fields, in the order of exports. New ones come last, because scripts read the others by position. */
export const OPERATOR_FIELDS = Object.keys({
  id: true,
  name: true,
  role: true,
  projects: true,
  expires_at: true,
  ceilings: true,
  is_active: true,
  obfuscated: true,
  created_at: true,
  updated_at: true,
  last_used_at: true,
} satisfies Record<keyof WireOperator, true>) as (keyof WireOperator)[];

const state = ({ is_active: isActive }: { is_active: boolean }) =>
  ({ kind: 'state', state: isActive ? 'active' : 'inactive' }) as const;

export const OPERATOR_COLUMNS = columnsOf<WireOperator>()({
  id: { title: 'ID', what: 'beginning of the ID', rank: 5, width: 8, cell: ({ id }) => ({ kind: 'id', id }) },
  name: { title: 'Name', what: 'name', rank: 0, width: [10, 40], keepsWidth: true, cell: ({ name }) => text(name) },
  role: { title: 'Role', what: 'what it may do', rank: 1, width: 8, isWhole: true, cell: ({ role }) => text(role) },
  state: { title: 'State', what: 'active or inactive', rank: 0, width: [8, 13], isWhole: true, cell: state },
  projects: {
    title: 'Projects',
    what: 'the projects that it may see',
    rank: 3,
    width: [8, 24],
    cell: ({ projects }) => text(projects === null ? 'all' : exact(projects.length)),
  },
  expires: {
    title: 'Expires',
    what: 'time until its secret expires',
    rank: 4,
    width: 9,
    cell: ({ expires_at: at }) => distance(at),
  },
  last_used: {
    title: 'Last used',
    what: 'time since the last request',
    rank: 2,
    width: 9,
    cell: ({ last_used_at: at }) => distance(at),
  },
  created: {
    title: 'Created',
    what: 'time since it was created',
    rank: 6,
    width: 9,
    cell: ({ created_at: at }) => distance(at),
  },
  ceilings: {
    title: 'Ceilings',
    what: 'the most that a token it issues may have',
    rank: 7,
    width: [10, 60],
    cell: ({ ceilings }) => text(ceilingsShown(ceilings)),
  },
  secret: {
    title: 'Secret',
    what: 'obfuscated secret',
    shownBy: ON_REQUEST,
    rank: 8,
    width: 16,
    cell: ({ obfuscated }) => ({ kind: 'code', text: obfuscated, tint: 'dim' }),
  },
});

// ---- trusts

/** All fields, in the order of exports. New ones come last. */
export const TRUST_FIELDS = Object.keys({
  id: true,
  issuer: true,
  audience: true,
  match: true,
  jwks_file: true,
  project_id: true,
  project_name: true,
  name: true,
  duration_minutes: true,
  max_requests: true,
  allow: true,
  limits: true,
  budget: true,
  max_active: true,
  per_hour: true,
  is_active: true,
  created_at: true,
  updated_at: true,
} satisfies Record<keyof WireTrust, true>) as (keyof WireTrust)[];

/** Such as `repository=acme/web, ref=refs/heads/main`. */
export const matchShown = (match: WireTrust['match']): string =>
  Object.entries(match)
    .map(([claim, value]) => `${claim}=${value}`)
    .join(', ');

export const TRUST_COLUMNS = columnsOf<WireTrust>()({
  id: { title: 'ID', what: 'beginning of the ID', rank: 0, width: 8, cell: ({ id }) => ({ kind: 'id', id }) },
  match: {
    title: 'Match',
    what: 'claims that a JWT must have',
    rank: 0,
    width: [16, 60],
    keepsWidth: true,
    cell: ({ match }) => text(matchShown(match)),
  },
  state: { title: 'State', what: 'whether JWTs are exchanged', rank: 0, width: [8, 13], isWhole: true, cell: state },
  project: {
    title: 'Project',
    what: 'project of the tokens',
    rank: 1,
    width: [9, 24],
    cell: ({ project_id: id, project_name: name }) => ({ kind: 'project', of: { id, name } }),
  },
  issuer: {
    title: 'Issuer',
    what: 'who issues the JWTs',
    rank: 2,
    width: [16, 48],
    cell: ({ issuer }) => text(issuer.replace(/^https:\/\//, '')),
  },
  minutes: {
    title: 'Minutes',
    what: 'lifetime of the tokens',
    rank: 3,
    width: 7,
    alignRight: true,
    cell: ({ duration_minutes: minutes }) => count(minutes),
  },
  per_hour: {
    title: 'Per hour',
    what: 'maximum number of tokens in an hour',
    rank: 4,
    width: 8,
    alignRight: true,
    cell: ({ per_hour: most }) => count(most),
  },
  created: {
    title: 'Created',
    what: 'time since it was created',
    rank: 6,
    width: 9,
    cell: ({ created_at: at }) => distance(at),
  },
});
