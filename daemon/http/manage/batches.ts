import type { Operations } from '../../api/operations.js';
import type { Live } from '../../../config/settings.js';
import { batchUndone } from '../../api/schemas.js';
import { extentOf } from '../../api/permissions.js';
import { scopeFor } from '../../core/authority.js';
import type { Batches } from '../../core/batches.js';
import type { Handlers } from './endpoints.js';
import { idOf } from './ids.js';
import { allowedBaseUrl } from './projects.js';
import { wired } from './wire.js';

export interface BatchOptions {
  batches: Batches;
  live: Live<'upstreamAllowedHosts'>;
}

const wireSubject = wired(batchUndone.shape.undone.element);
const wireSkipped = wired(batchUndone.shape.skipped.element);

export function batchHandlers({ batches, live }: BatchOptions): Handlers<Pick<Operations, 'undoBatch'>> {
  return {
    undoBatch: async (request) => {
      const after = Number(request.body.cursor ?? 0);
      const { authority, scope: tokens } = request;
      const mayChangeProjects = extentOf(authority?.role ?? null, 'change projects') !== null;
      const projects = mayChangeProjects ? scopeFor(authority, 'change projects') : null;
      const scope = { tokens, projects, by: authority };
      const result = await batches.undo(idOf(request, 'batch'), after, request.caller, scope, (baseUrl) => {
        allowedBaseUrl(baseUrl, live.current.upstreamAllowedHosts);
      });
      return {
        batch: result.batch,
        undone: result.undone.map(wireSubject),
        skipped: result.skipped.map(wireSkipped),
        next: result.next === null ? null : String(result.next),
      };
    },
  };
}
