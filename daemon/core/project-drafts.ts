/** Projects before they are stored: new ones, and what a change makes of one. */
import { randomUUID } from 'node:crypto';
import type { KeyCheck, MissingUsage, PolicyChanges, UpstreamAuth } from '../api/vocabulary.js';
import type { Change, ProjectChanges } from './ports.js';
import type { Project } from './token.js';

/** Default policies: null. */
export interface ProjectDraft extends PolicyChanges {
  name: string;
  upstreamKey: string;
  /** Default: null, which is UPSTREAM_BASE_URL. */
  upstreamBaseUrl?: string | null | undefined;
  /** Default: `bearer`. */
  upstreamAuth?: UpstreamAuth | undefined;
  /** Default: `off`. */
  missingUsage?: MissingUsage | undefined;
  /** Result of the check of the key, for the audit record; undefined if it was not checked. */
  keyCheck?: KeyCheck | undefined;
}

export function newProject(draft: ProjectDraft, now: number): Project {
  return {
    id: randomUUID(),
    name: draft.name,
    isActive: true,
    apiKeyHint: hintOf(draft.upstreamKey),
    upstreamBaseUrl: draft.upstreamBaseUrl ?? null,
    upstreamAuth: draft.upstreamAuth ?? 'bearer',
    missingUsage: draft.missingUsage ?? 'off',
    allow: draft.allow ?? null,
    limits: draft.limits ?? null,
    budget: draft.budget ?? null,
    createdAtMs: now,
    updatedAtMs: now,
    deactivatedAtMs: null,
  };
}

/** A new project for the audit record, without what is usual. */
export function detailsOf(project: Project, keyCheck: KeyCheck | undefined): Record<string, unknown> {
  const { name, upstreamBaseUrl, upstreamAuth, missingUsage, allow, limits, budget } = project;
  return {
    name,
    ...(upstreamBaseUrl !== null && { upstream_base_url: upstreamBaseUrl }),
    ...(upstreamAuth !== 'bearer' && { upstream_auth: upstreamAuth }),
    ...(missingUsage !== 'off' && { missing_usage: missingUsage }),
    ...(allow && { allow }),
    ...(limits && { limits }),
    ...(budget && { budget }),
    ...(keyCheck && { key_check: keyCheck }),
  };
}

const HINT_LENGTH = 4;

/** The last characters of a key; '' for a short key, of which they would reveal too much. */
function hintOf(upstreamKey: string): string {
  return upstreamKey.length >= 4 * HINT_LENGTH ? upstreamKey.slice(-HINT_LENGTH) : '';
}

/** The project after these changes. */
export function applied(before: Project, changes: ProjectChanges, now: number): Project {
  const isActive = changes.isActive ?? before.isActive;
  return {
    ...before,
    name: changes.name ?? before.name,
    isActive,
    apiKeyHint: changes.upstreamKey === undefined ? before.apiKeyHint : hintOf(changes.upstreamKey),
    upstreamBaseUrl: changes.upstreamBaseUrl === undefined ? before.upstreamBaseUrl : changes.upstreamBaseUrl,
    upstreamAuth: changes.upstreamAuth ?? before.upstreamAuth,
    missingUsage: changes.missingUsage ?? before.missingUsage,
    allow: changes.allow === undefined ? before.allow : changes.allow,
    limits: changes.limits === undefined ? before.limits : changes.limits,
    budget: changes.budget === undefined ? before.budget : changes.budget,
    // Later than before, so that no two versions have the same time: also if the clock stands still, or another instance's is ahead.
    updatedAtMs: Math.max(now, before.updatedAtMs + 1),
    deactivatedAtMs: isActive ? null : (before.deactivatedAtMs ?? now),
  };
}

/** A change has one kind. A deactivation takes precedence, because it ends requests in flight. */
export function kindOf(before: Project, after: Project): Change['kind'] {
  if (!after.isActive && before.isActive) return 'project.deactivated';
  if (after.isActive && !before.isActive) return 'project.activated';
  return 'project.updated';
}

/** The fields that a change may have, under their names in the API and the audit log. */
export const PROJECT_FIELDS = {
  name: 'name',
  is_active: 'isActive',
  upstream_base_url: 'upstreamBaseUrl',
  upstream_auth: 'upstreamAuth',
  missing_usage: 'missingUsage',
  allow: 'allow',
  limits: 'limits',
  budget: 'budget',
} as const satisfies Record<string, keyof Project & keyof ProjectChanges>;

/** Old and new values of the fields in the request. For a key only its hint. */
export function difference(before: Project, after: Project, asked: ProjectChanges): Record<string, unknown> {
  const pairs: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(PROJECT_FIELDS)) {
    if (asked[field] !== undefined) pairs[name] = [before[field], after[field]];
  }
  if (asked.upstreamKey !== undefined) pairs.api_key_hint = [before.apiKeyHint, after.apiKeyHint];
  if (asked.keyCheck !== undefined) pairs.key_check = asked.keyCheck;
  return pairs;
}
