/** Conversion of what is wrong now between the core's values and the shapes of daemon/api. */
import type { WireIncident, WireIncidents } from '../../api/contract.js';
import { causeNamed } from '../../api/request-outcome.js';
import type { Incident, IncidentReport } from '../../core/incidents.js';
import type { Names } from '../../core/ports.js';
import { isoTime, roundedOrNull } from './wire.js';

const SLOW = {
  why: 'provider slow',
  remedy: 'see the status page of the provider, or use a faster model',
};

export const wireIncidents = ({ fromMs, toMs, incidents }: IncidentReport, names: Names): WireIncidents => ({
  from: isoTime(fromMs),
  to: isoTime(toMs),
  incidents: incidents.map((incident) => wireIncident(incident, names)),
});

function wireIncident(incident: Incident, { tokens, projects }: Names): WireIncident {
  const { kind, projectId, tokenId, cause } = incident;
  const { why, remedy = null } = cause === null ? SLOW : causeNamed(cause);
  return {
    kind,
    project_id: projectId,
    project_name: projectId === null ? null : (projects.get(projectId) ?? null),
    token_id: tokenId,
    token_name: tokenId === null ? null : (tokens.get(tokenId) ?? null),
    why,
    remedy,
    failures: incident.failures,
    requests: incident.requests,
    tokens: incident.tokens,
    p50_ms: roundedOrNull(incident.p50Ms),
    earlier_p50_ms: roundedOrNull(incident.earlierP50Ms),
  };
}
