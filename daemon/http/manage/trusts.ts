/** Handlers of the operations on trusts. */
import { issuerUrl } from '../../../config/urls.js';
import type { Operations } from '../../api/operations.js';
import { Refusal } from '../../core/refusal.js';
import type { Trusts } from '../../core/trusts.js';
import type { Handlers } from './endpoints.js';
import { idOf, isId, notFound } from './ids.js';
import { policiesIn, wirePage, wireTrust } from './wire.js';

type TrustOperation = 'createTrust' | 'listTrusts' | 'readTrust' | 'updateTrust' | 'deleteTrust';

export interface TrustOptions {
  trusts: Trusts;
  /** Whether trusts may name files of keys: JWKS_DIR is set. */
  hasKeyFiles: boolean;
}

const invalid = (message: string) => new Refusal('invalid_request', message);

export function trustHandlers({ trusts, hasKeyFiles }: TrustOptions): Handlers<Pick<Operations, TrustOperation>> {
  const checkKeyFile = (file: string | null | undefined) => {
    if (typeof file === 'string' && !hasKeyFiles) throw invalid('jwks_file needs the setting JWKS_DIR of the daemon');
  };
  return {
    createTrust: async ({ body, caller }) => {
      const { issuer, project_id: projectId, jwks_file: jwksFile } = body;
      if (issuerUrl.parse(issuer) === undefined) throw invalid(`issuer must be ${issuerUrl.accepts}`);
      checkKeyFile(jwksFile);
      if (!isId(projectId)) throw notFound('project');
      return wireTrust(await trusts.create({ issuer, projectId: projectId.toLowerCase(), ...termsIn(body) }, caller));
    },

    listTrusts: async (_request, page) => wirePage(await trusts.trusts(page), wireTrust),

    readTrust: async (request) => wireTrust(await trusts.trust(idOf(request, 'trust'))),

    updateTrust: async (request) => {
      const changes = { ...termsIn(request.body), isActive: request.body.is_active };
      if (Object.values(changes).every((value) => value === undefined)) {
        throw invalid(`nothing to change: give at least one of ${CHANGEABLE}`);
      }
      checkKeyFile(changes.jwksFile);
      return wireTrust(await trusts.update(idOf(request, 'trust'), changes, request.caller, request.expectMatch));
    },

    deleteTrust: async (request) => {
      await trusts.delete(idOf(request, 'trust'), request.caller, request.expectMatch);
      return { message: 'trust deleted' };
    },
  };
}

const CHANGEABLE =
  'is_active, match, audience, jwks_file, name, duration_minutes, max_requests, allow, limits, budget, max_active and per_hour';

type Terms = Partial<Parameters<Handlers<Pick<Operations, 'updateTrust'>>['updateTrust']>[0]['body']>;

/** What a request says of the terms of a trust; the rest is undefined. */
function termsIn<Body extends Terms>(body: Body) {
  return {
    match: body.match as Body['match'],
    audience: body.audience as Body['audience'],
    durationMinutes: body.duration_minutes as Body['duration_minutes'],
    jwksFile: body.jwks_file,
    name: body.name,
    maxRequests: body.max_requests,
    maxActive: body.max_active,
    perHour: body.per_hour,
    ...policiesIn(body),
  };
}
