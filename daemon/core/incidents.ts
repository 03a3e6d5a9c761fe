/**
 * # What is wrong now
 *
 * For `GET /manage/incidents`: what fails in the last minutes, each cause once, and the providers that are slower than in the hour
 * before. A cause belongs to the token that has nearly all of its failures, unless it concerns the whole project. The figures are read
 * from the database, so they are the same on every instance, and survive a restart.
 */
import { causeNamed, KEY_REFUSED } from '../api/request-outcome.js';
import { INCIDENT_KINDS, type IncidentKind } from '../api/vocabulary.js';
import { AdaptiveMemo } from './adaptive-memo.js';
import { quantile } from './histogram.js';
import type { Clock, FailureCause, IncidentFigures, RecentRequests, Scope } from './ports.js';
import { orUnavailable } from './refusal.js';
import { TIME_BOUNDS_MS, type UsageStatistics } from './usage.js';

/** Fewer failures are not reported, nor is a smaller share of the requests. A refused key is, from the first failure on. */
const LEAST_FAILURES = 3;
const LEAST_SHARE = 0.05;
/** The share of the failures in a project that makes them those of one token. */
const SHARE_OF_TOKEN = 0.8;
/** A provider is slow if its median is so many times the earlier one, and so long. Medians are off by up to a factor of two. */
const SLOW_FACTOR = 3;
const SLOW_MS = 2_000;
const LEAST_RESPONSES = 20;
const MAX_INCIDENTS = 30;
/** With fewer failing tokens and projects the figures are read each time, so that they are never out of date. */
const MANY = 200;
/** Figures of different scopes that are reused. */
const MAX_REUSED = 32;
const areMany = ({ causes, requests }: IncidentFigures): boolean =>
  causes.reduce((sum, { tokens }) => sum + tokens, requests.length) > MANY;

export interface Incident {
  kind: IncidentKind;
  /** Null for requests with an unknown token. */
  projectId: string | null;
  tokenId: string | null;
  /** Null if nothing fails. */
  cause: string | null;
  failures: number;
  /** All requests of the token or project. */
  requests: number;
  /** Tokens with these failures. */
  tokens: number;
  p50Ms: number | null;
  earlierP50Ms: number | null;
}

export interface IncidentReport {
  fromMs: number;
  toMs: number;
  /** The most urgent first. */
  incidents: Incident[];
}

export class Incidents {
  readonly #usage: Pick<UsageStatistics, 'incidents'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #memo: AdaptiveMemo<IncidentFigures & { toMs: number }>;

  constructor(usage: Pick<UsageStatistics, 'incidents'>, clock: Pick<Clock, 'now' | 'monotonic' | 'after'>) {
    this.#usage = usage;
    this.#clock = clock;
    this.#memo = new AdaptiveMemo<IncidentFigures & { toMs: number }>(clock, MAX_REUSED, areMany);
  }

  /** @throws {Refusal} `unavailable` if the database does not respond. */
  async report(scope: Scope): Promise<IncidentReport> {
    const read = async () => ({ toMs: this.#clock.now(), ...(await this.#usage.incidents(scope)) });
    const figures = await orUnavailable(this.#memo.current(JSON.stringify(scope), read));
    return { fromMs: figures.fromMs, toMs: figures.toMs, incidents: incidentsIn(figures) };
  }
}

function incidentsIn({ causes, requests }: IncidentFigures): Incident[] {
  const requestsOf = new Map(requests.map((row) => [`${row.projectId}\n${row.tokenId}`, row.requests]));
  const all = requests.reduce((sum, row) => sum + (row.tokenId === '' ? row.requests : 0), 0);
  const failing = causes.flatMap((cause): Incident[] => {
    const incident = incidentOf(cause);
    const { projectId, tokenId } = incident;
    const done = projectId === null ? all : (requestsOf.get(`${projectId}\n${tokenId ?? ''}`) ?? incident.failures);
    const isReported =
      incident.kind === 'key_refused' ||
      (incident.failures >= LEAST_FAILURES && incident.failures >= done * LEAST_SHARE);
    return isReported ? [{ ...incident, requests: done }] : [];
  });
  const slow = requests.flatMap((row) => (row.tokenId === '' && row.projectId !== '' ? slowProvider(row) : []));
  const rank = ({ kind }: Incident) => INCIDENT_KINDS.indexOf(kind);
  return [...failing, ...slow]
    .sort((one, other) => rank(one) - rank(other) || other.failures - one.failures)
    .slice(0, MAX_INCIDENTS);
}

function incidentOf({ projectId, cause, failures, tokens, tokenId, failuresOfToken }: FailureCause): Incident {
  const common = { cause, failures, requests: 0, tokens, p50Ms: null, earlierP50Ms: null };
  if (projectId === '') return { ...common, kind: 'unknown_tokens', projectId: null, tokenId: null };
  if (cause === KEY_REFUSED) return { ...common, kind: 'key_refused', projectId, tokenId: null };
  if (!causeNamed(cause).isOfProject && failuresOfToken >= failures * SHARE_OF_TOKEN)
    return { ...common, kind: 'failing_token', projectId, tokenId, failures: failuresOfToken, tokens: 1 };
  return { ...common, kind: 'failing_project', projectId, tokenId: null };
}

function slowProvider({ projectId, requests, times, earlierTimes }: RecentRequests): Incident[] {
  const [p50Ms, earlierP50Ms] = [times, earlierTimes].map((counts) => quantile(TIME_BOUNDS_MS, counts, 0.5));
  const responses = Math.min(...[times, earlierTimes].map((counts) => counts.reduce((sum, count) => sum + count, 0)));
  if (!p50Ms || !earlierP50Ms || responses < LEAST_RESPONSES) return [];
  if (p50Ms < SLOW_MS || p50Ms < earlierP50Ms * SLOW_FACTOR) return [];
  const none = { tokenId: null, cause: null, failures: 0, tokens: 0 };
  return [{ ...none, kind: 'slow_provider', projectId, requests, p50Ms, earlierP50Ms }];
}
