/** Handlers of the operations on projects. */
import type { WireProjectChanged } from '../../api/contract.js';
import type { Operations } from '../../api/operations.js';
import { projectBaseUrl } from '../../../config/urls.js';
import type { Live } from '../../../config/settings.js';
import type { KeyCheck, UpstreamAuth } from '../../api/vocabulary.js';
import { Refusal, type RefusalKind } from '../../core/refusal.js';
import type { Registry, ShownProject } from '../../core/registry.js';
import type { Project } from '../../core/token.js';
import { keyCheckOf, type ProbeProvider, projectCheckOf } from '../proxy/key-check.js';
import type { ProjectUpstream } from '../proxy/upstreams.js';
import type { Handlers, OperationRequest } from './endpoints.js';
import { idIn, idOf } from './ids.js';
import { policiesIn, wirePage, wireProject } from './wire.js';

type ProjectOperation =
  | 'createProject'
  | 'listProjects'
  | 'readProject'
  | 'updateProject'
  | 'deleteProject'
  | 'revokeTokensOfProject'
  | 'checkProject';

export interface ProjectOptions {
  registry: Registry;
  probeProvider: ProbeProvider;
  live: Live<'upstreamAllowedHosts'>;
}

const invalid = (message: string) => new Refusal('invalid_request', message);

/** @returns the URL as stored. @throws {Refusal} `invalid_request` for a base URL that no project may have. */
export function allowedBaseUrl(text: string, allowedHosts: Parameters<typeof projectBaseUrl>[1]): string {
  const found = projectBaseUrl(text, allowedHosts);
  if ('problem' in found) throw invalid(`upstream_base_url ${found.problem}`);
  return found.url;
}

interface UpstreamFields {
  upstream_base_url?: string | null | undefined;
  upstream_auth?: UpstreamAuth | undefined;
}

type UpstreamChanges = { [Name in keyof ProjectUpstream]: ProjectUpstream[Name] | undefined };

export function projectHandlers({
  registry,
  probeProvider,
  live,
}: ProjectOptions): Handlers<Pick<Operations, ProjectOperation>> {
  /**
   * Checks a key before a change, outside of the change's transaction: see `expectAsChecked`. Records in the audit log that it was not
   * stored.
   *
   * @param expect throws a refusal if the key must not be sent.
   */
  async function checked(
    key: ProjectUpstream & { upstreamKey: string },
    { caller, clientGone }: Pick<OperationRequest, 'caller' | 'clientGone'>,
    projectId: string | null,
    details: { name?: string | undefined },
    expect?: () => void,
  ): Promise<KeyCheck> {
    try {
      expect?.();
      return keyCheckOf(await probeProvider({ ...key, requestId: caller.requestId ?? '', signal: clientGone() }));
    } catch (error) {
      if (error instanceof Refusal && NOT_STORED.has(error.kind)) {
        await registry.recordKeyRefusal(projectId, details, error, caller);
      }
      throw error;
    }
  }

  /** @throws {Refusal} as `allowedBaseUrl`. */
  function upstreamIn({ upstream_base_url: text, upstream_auth: upstreamAuth }: UpstreamFields): UpstreamChanges {
    if (typeof text !== 'string') return { upstreamBaseUrl: text, upstreamAuth };
    return { upstreamBaseUrl: allowedBaseUrl(text, live.current.upstreamAllowedHosts), upstreamAuth };
  }

  return {
    createProject: async (request) => {
      const { name, api_key: upstreamKey, check_key: isToCheck, missing_usage: missingUsage } = request.body;
      const policies = policiesIn(request.body);
      const upstream = upstreamIn(request.body);
      const key = { upstreamKey, ...upstream };
      const keyCheck = isToCheck
        ? await checked({ ...after(DEFAULT_UPSTREAM, upstream), upstreamKey }, request, null, { name })
        : undefined;
      upstreamIn(request.body); // UPSTREAM_ALLOWED_HOSTS may have been reloaded during the check.
      return wireChanged(
        await registry.createProject({ name, ...key, missingUsage, ...policies, keyCheck }, request.caller),
        keyCheck,
      );
    },

    listProjects: async ({ query, scope }, page) =>
      wirePage(await registry.projects({ isActive: query.is_active }, page, scope), wireProject),

    readProject: async (request) => wireProject(await registry.project(idOf(request, 'project'), request.scope)),

    updateProject: async (request) => {
      const { name, api_key: upstreamKey, is_active: isActive, check_key: isToCheck } = request.body;
      const { missing_usage: missingUsage } = request.body;
      if (isToCheck && upstreamKey === undefined) throw invalid('check_key requires api_key');
      const changes = {
        name,
        upstreamKey,
        isActive,
        missingUsage,
        ...policiesIn(request.body),
        ...upstreamIn(request.body),
      };
      if (Object.values(changes).every((value) => value === undefined)) {
        throw invalid(
          'nothing to change: give at least one of is_active, name, api_key, upstream_base_url, upstream_auth, missing_usage, allow, limits and budget',
        );
      }
      const id = idOf(request, 'project');
      // A key for an unknown project is not sent to a provider; the update refuses it.
      const before = isToCheck ? await registry.projectBefore(id, request.scope) : null;
      let keyCheck: KeyCheck | undefined;
      if (before && upstreamKey !== undefined) {
        keyCheck = await checked({ ...after(before, changes), upstreamKey }, request, id, {}, () => {
          request.expectMatch(before);
        });
      }
      const expect = (current: Project) => {
        request.expectMatch(current);
        upstreamIn(request.body); // UPSTREAM_ALLOWED_HOSTS may have been reloaded during the check.
        if (before) expectAsChecked(after(before, changes), after(current, changes));
      };
      const { caller, scope } = request;
      const project = await registry.updateProject(id, { ...changes, keyCheck }, caller, scope, expect);
      return wireChanged(project, keyCheck);
    },

    // Regardless of whether the project exists: projects are never deleted, and each attempt is audited.
    deleteProject: ({ id, caller }) => registry.refuseProjectDeletion(idIn(id), caller),

    checkProject: async (request) => {
      const upstream = await registry.storedUpstream(idOf(request, 'project'), request.scope);
      const { caller, clientGone } = request;
      return projectCheckOf(
        await probeProvider({ ...upstream, requestId: caller.requestId ?? '', signal: clientGone() }),
      );
    },

    revokeTokensOfProject: async (request) => {
      const count = await registry.revokeTokensOf(idOf(request, 'project'), request.caller, request.scope);
      return { message: `${count} ${count === 1 ? 'token' : 'tokens'} revoked`, revoked_count: count };
    },
  };
}

/** Why a key was not stored, to be recorded. */
const NOT_STORED: ReadonlySet<RefusalKind> = new Set(['key_refused', 'key_not_checked', 'precondition_failed']);

/** A key that one provider has accepted must not be stored for another, to which it would be sent. */
function expectAsChecked(checked: ProjectUpstream, stored: ProjectUpstream): void {
  if (checked.upstreamBaseUrl === stored.upstreamBaseUrl && checked.upstreamAuth === stored.upstreamAuth) return;
  throw new Refusal('upstream_changed', 'the provider of the project was changed while the key was checked');
}

const DEFAULT_UPSTREAM: ProjectUpstream = { upstreamBaseUrl: null, upstreamAuth: 'bearer' };

/** A project's upstream after a change; undefined fields stay unchanged. */
const after = (before: ProjectUpstream, { upstreamBaseUrl, upstreamAuth }: UpstreamChanges): ProjectUpstream => ({
  upstreamBaseUrl: upstreamBaseUrl === undefined ? before.upstreamBaseUrl : upstreamBaseUrl,
  upstreamAuth: upstreamAuth ?? before.upstreamAuth,
});

const wireChanged = (project: ShownProject, keyCheck: KeyCheck | undefined): WireProjectChanged => ({
  ...wireProject(project),
  ...(keyCheck && { key_check: keyCheck }),
});
