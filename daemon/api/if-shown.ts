/** Makes a change of something that a user has seen in a list conditional: lists have no ETags, so it is read again, and compared. */
import { ApiError, type ChangeOptions, etagOf, type ManagementClient } from './client.js';
import type { WireProject, WireToken } from './contract.js';

/** The fields that differ between any two versions. */
export type ShownToken = Pick<WireToken, 'id' | 'is_active' | 'revoked_at' | 'allow' | 'limits' | 'budget'>;
export type ShownProject = Pick<WireProject, 'id' | 'updated_at'>;

/** @throws {ApiError} `precondition_failed` if somebody has changed it since. */
export async function ifTokenAsShown(client: ManagementClient, shown: ShownToken): Promise<ChangeOptions> {
  const now = await client.token(shown.id);
  return optionsFor(now, versionOf(now) === versionOf(shown));
}

const versionOf = ({ is_active: isActive, revoked_at: revokedAt, allow, limits, budget }: ShownToken) =>
  JSON.stringify([isActive, revokedAt, allow, limits, budget]);

/** @throws {ApiError} `precondition_failed` if somebody has changed it since. */
export async function ifProjectAsShown(client: ManagementClient, shown: ShownProject): Promise<ChangeOptions> {
  const now = await client.project(shown.id);
  return optionsFor(now, now.updated_at === shown.updated_at);
}

function optionsFor(now: WireToken | WireProject, isAsShown: boolean): ChangeOptions {
  if (!isAsShown)
    throw new ApiError(412, 'precondition_failed', 'somebody has changed it since it was shown', null, null);
  return { ifMatch: etagOf(now) ?? '*' };
}
