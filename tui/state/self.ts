/** Who is logged in, in words. */
import { ceilingsShown, ROLE_TITLES } from '../../console/columns/access.js';
import { shortId } from '../../console/columns/cell-text.js';
import { relativeTime } from '../../daemon/api/formats.js';
import { projectName } from './projects.js';
import { daemonNow, type State } from './state.js';

/** The names of projects, as far as they are known. @param ids null: all. */
export const projectsShown = (state: State, ids: readonly string[] | null): string =>
  ids === null ? 'all' : ids.map((id) => projectName(state, id) ?? shortId(id)).join(', ');

/** What the caller is and may do; none until that is known. */
export function selfSentences(state: State): string[] {
  const { self } = state;
  if (self === null) return [];
  const { name, role, projects, ceilings, expires_at: expiresAt } = self;
  if (role === null) return ['You hold the management token, which allows everything.'];
  return [
    `You are ${name ?? self.actor} (${self.actor}).`,
    `Your role is ${ROLE_TITLES[role]}.`,
    `Your projects: ${projectsShown(state, projects)}.`,
    ...(ceilings === null
      ? []
      : [`Your ceilings, the most that a token of yours may have: ${ceilingsShown(ceilings)}.`]),
    ...(expiresAt === null ? [] : [`This access ends ${relativeTime(expiresAt, daemonNow(state))}.`]),
  ];
}
