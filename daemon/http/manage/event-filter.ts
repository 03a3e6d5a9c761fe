/** Filter of events by the parameters of a query. */
import type * as z from 'zod';
import { tookMs } from '../../api/vocabulary.js';
import type * as schemas from '../../api/schemas.js';
import { projectsOf } from '../../core/authority.js';
import type { EventFacts, Scope } from '../../core/ports.js';

type Query = Omit<z.output<typeof schemas.eventQuery>, 'limit' | 'cursor' | 'since' | 'until'>;
type Test = (event: EventFacts) => boolean;

export interface Period {
  /** Inclusive. */
  sinceMs: number | undefined;
  /** Exclusive. */
  untilMs?: number | undefined;
}

/** @returns whether an event matches all parameters; null if there are none, so that all events match. */
export function eventFilter(query: Query, { sinceMs, untilMs }: Period, scope: Scope): Test | null {
  const { project_id: projectId, token_id: tokenId, kind, status, code, outcome, model, took_over: took } = query;
  const projects = projectsOf(scope);
  const tests = [
    projects === null ? null : (of: EventFacts) => of.projectId !== null && projects.includes(of.projectId),
    sinceMs === undefined ? null : ({ timeMs }: EventFacts) => timeMs >= sinceMs,
    untilMs === undefined ? null : ({ timeMs }: EventFacts) => timeMs < untilMs,
    projectId === undefined ? null : (of: EventFacts) => of.projectId === projectId,
    tokenId === undefined ? null : (of: EventFacts) => of.tokenId === tokenId,
    kind === undefined ? null : (of: EventFacts) => of.kind === kind,
    status === undefined ? null : hasStatus(status),
    code === undefined ? null : isSelected(code, ({ code: value }) => value, equals),
    outcome === undefined ? null : isSelected(outcome, ({ outcome: value }) => value, equals),
    model === undefined ? null : isSelected(model.toLowerCase(), modelOf, includes),
    took === undefined ? null : tookOver(tookMs(took) ?? 0),
  ].filter((test) => test !== null);
  return tests.length === 0 ? null : (event) => tests.every((test) => test(event));
}

/** @param written such as `429` or `4xx,5xx`, already validated. */
function hasStatus(written: string): Test {
  const pattern = new RegExp(`^(?:${written.replaceAll('x', '\\d').replaceAll(',', '|')})$`);
  return ({ status }) => status !== null && pattern.test(String(status));
}

type Matches = (value: string, wanted: string) => boolean;
const equals: Matches = (value, wanted) => value === wanted;
const includes: Matches = (value, wanted) => value.includes(wanted);
const modelOf = ({ model }: EventFacts) => model?.toLowerCase() ?? null;

/** @param written such as `a,b`, of which one must match, or `!a,b`, of which none may match. Only requests match. */
function isSelected(written: string, valueOf: (event: EventFacts) => string | null, matches: Matches): Test {
  const isExcluding = written.startsWith('!');
  const values = (isExcluding ? written.slice(1) : written).split(',');
  return (event) => {
    const value = valueOf(event);
    const isAmong = value !== null && values.some((wanted) => matches(value, wanted));
    return event.outcome !== null && isAmong !== isExcluding;
  };
}

const tookOver =
  (ms: number): Test =>
  ({ durationMs }) =>
    durationMs !== null && durationMs > ms;
