/** Handlers of the operations on projects. */
import type { WireProjectChanged } from '../../api/contract.js';
import type { Operations } from '../../api/operations.js';
import type { KeyCheck } from '../../api/vocabulary.js';
import { Refusal } from '../../core/refusal.js';
import type { Registry, ShownProject } from '../../core/registry.js';
import type { CheckKey } from '../proxy/key-check.js';
import type { Handlers, OperationRequest } from './endpoints.js';
import { idIn, idOf } from './ids.js';
import { wirePage, wireProject } from './wire.js';

type ProjectOperation =
  'createProject' | 'listProjects' | 'readProject' | 'updateProject' | 'deleteProject' | 'revokeTokensOfProject';

export interface ProjectOptions {
  registry: Registry;
  /** Checks a key with the provider. */
  checkKey: CheckKey;
}

const invalid = (message: string) => new Refusal('invalid_request', message);

export function projectHandlers({ registry, checkKey }: ProjectOptions): Handlers<Pick<Operations, ProjectOperation>> {
  /** Checks a key before a change, outside of the change's transaction. Records in the audit log that it was not stored. */
  async function checked(
    upstreamKey: string,
    { caller, clientGone }: Pick<OperationRequest, 'caller' | 'clientGone'>,
    projectId: string | null,
    details: { name?: string | undefined },
  ): Promise<KeyCheck> {
    try {
      return await checkKey({ upstreamKey, requestId: caller.requestId ?? '', signal: clientGone() });
    } catch (error) {
      if (error instanceof Refusal && (error.kind === 'key_refused' || error.kind === 'key_not_checked')) {
        await registry.recordKeyRefusal(projectId, details, error, caller);
      }
      throw error;
    }
  }

  return {
    createProject: async (request) => {
      const { name, api_key: upstreamKey, check_key: isToCheck } = request.body;
      const keyCheck = isToCheck ? await checked(upstreamKey, request, null, { name }) : undefined;
      return wireChanged(await registry.createProject({ name, upstreamKey, keyCheck }, request.caller), keyCheck);
    },

    listProjects: async ({ query }, page) =>
      wirePage(await registry.projects({ isActive: query.is_active }, page), wireProject),

    readProject: async (request) => wireProject(await registry.project(idOf(request, 'project'))),

    updateProject: async (request) => {
      const { name, api_key: upstreamKey, is_active: isActive, check_key: isToCheck } = request.body;
      if (isToCheck && upstreamKey === undefined) throw invalid('check_key requires api_key');
      if (name === undefined && upstreamKey === undefined && isActive === undefined) {
        throw invalid('nothing to change: give at least one of is_active, name and api_key');
      }
      const id = idOf(request, 'project');
      // A key for an unknown project is not sent to the provider; the update refuses it.
      const keyCheck =
        isToCheck && upstreamKey !== undefined && (await registry.hasProject(id))
          ? await checked(upstreamKey, request, id, {})
          : undefined;
      const changes = { name, upstreamKey, isActive, keyCheck };
      return wireChanged(await registry.updateProject(id, changes, request.caller), keyCheck);
    },

    // Regardless of whether the project exists: projects are never deleted, and each attempt is audited.
    deleteProject: ({ id, caller }) => registry.refuseProjectDeletion(idIn(id), caller),

    revokeTokensOfProject: async (request) => {
      const count = await registry.revokeTokensOf(idOf(request, 'project'), request.caller);
      return { message: `${count} ${count === 1 ? 'token' : 'tokens'} revoked`, revoked_count: count };
    },
  };
}

const wireChanged = (project: ShownProject, keyCheck: KeyCheck | undefined): WireProjectChanged => ({
  ...wireProject(project),
  ...(keyCheck && { key_check: keyCheck }),
});
