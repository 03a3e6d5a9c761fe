/** Issuing a token again: a new token with the project, name, cap and lifetime of another one, in any state. */
import { spanShown } from '../../console/span.js';
import type { WireToken } from '../../daemon/api/contract.js';
import { exact } from '../../daemon/api/formats.js';
import { confirm, nameOf, note, where } from './changes.js';
import type { State, Transition } from './state.js';

/** Opens the dialog that confirms it, with the focus on its button: a new token takes nothing away. */
export function issueAgain(state: State, token: WireToken): Transition {
  const { id, project_name: project, max_requests: cap, name } = token;
  const lifetime = spanShown(Date.parse(token.expires_at) - Date.parse(token.created_at));
  const requests = cap === 0 ? 'unlimited requests' : `up to ${exact(cap)} requests`;
  return confirm(state, {
    change: { what: 'create-token', body: { like: id } },
    title: `Issue ${nameOf(token)} again in ${where(state)}`,
    action: 'Issue',
    notes: [
      note(
        `A new token ${name === null ? 'without a name' : `named ${name}`} for ${project}: ${lifetime}, ${requests}.`,
      ),
      ...(token.state === 'active' ? [note('The existing token stays active.')] : []),
    ],
    typed: null,
    focus: 'action',
  });
}

/** Why no token can be issued for the project of this one; null: one can. */
export function whyNotAgain(
  { projects }: State,
  { state, project_id: id, project_name: name }: WireToken,
): string | null {
  const project = projects.all?.find((it) => it.id === id);
  const isInactive = project ? !project.is_active : state === 'project_inactive';
  return isInactive ? `Project ${project?.name ?? name} is inactive; activate it to issue tokens` : null;
}
