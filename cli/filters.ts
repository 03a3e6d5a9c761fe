/** The options with which commands select by project, token and time. */
import { type Moment, timestampOf } from '../console/span.js';
import type { ManagementClient } from '../daemon/api/client.js';
import { checkedId, wholeIdOf } from './ids.js';
import { text, type Values } from './option.js';

export const onlyProject = { projectId: text('--project-id <ID>', 'only this project, by name or ID', 'project') };
export const onlyIds = { ...onlyProject, tokenId: text('--token-id <ID>', 'only this token, by name or ID', 'token') };

/**
 * Checks the form of the given IDs, before anything is sent.
 *
 * @returns a function that asks the daemon for the full IDs, and returns them as fields of a query.
 * @throws {Failure} if one of them can be neither an ID nor a name.
 */
export function idsIn({ projectId, tokenId }: Values<typeof onlyIds>) {
  const project = projectId === undefined ? undefined : checkedId('project', projectId);
  const token = tokenId === undefined ? undefined : checkedId('token', tokenId);
  return async (client: ManagementClient): Promise<{ project_id?: string; token_id?: string }> => ({
    ...(project !== undefined && { project_id: await wholeIdOf(client, 'project', project) }),
    ...(token !== undefined && { token_id: await wholeIdOf(client, 'token', token) }),
  });
}

/** The times of --since and --until as fields of a query. */
export const timesIn = (
  { since, until }: { since?: Moment | undefined; until?: Moment | undefined },
  nowMs: number,
) => ({
  ...(since && { since: timestampOf(since, nowMs) }),
  ...(until && { until: timestampOf(until, nowMs) }),
});
