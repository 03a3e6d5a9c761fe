/** How the terms of a line become a query for events, and a predicate. */
import type { EventStreamQuery, WireEvent, WireRequestEvent } from '../../daemon/api/contract.js';
import { causeOf } from '../../daemon/api/request-outcome.js';
import { FAILED_OUTCOMES, REQUEST_EVENT_KIND, tookMs } from '../../daemon/api/vocabulary.js';
import { keysOf } from './keys.js';
import { fitsChoice, fitsPart, fitsWords, type Selection, TermReader, unique } from './reader.js';
import type { Term } from './terms.js';
import type { KnownNames, TermsResult } from './types.js';
import * as values from './values.js';

/** Limit of the API for the values of one parameter. */
const MAX_VALUES = 20;

type Test = (event: WireEvent) => boolean;

/** The daemon filters as far as the API can express; `matches` tests everything. */
export function eventReading(terms: readonly Term[], { projects, tokens }: KnownNames): TermsResult<'events'> {
  const reader = new TermReader(terms, keysOf('events', { projects: [] }));
  const status = reader.choice('status', values.statuses.resolve);
  const outcomes = withFailures(reader.choice('outcome', values.requestOutcome.resolve));
  const causes = reader.choice('why', values.cause.resolve);
  const codes = reader.choice('code', values.errorCode.resolve);
  const models = reader.choice('model', values.modelPart);
  const took = reader.bounds('took', values.took);
  const kinds = reader.choice('kind', values.kind.resolve);
  const ofProjects = reader.choice('project', values.projectIn(projects));
  const ofTokens = reader.choice('token', values.tokenIn(tokens));
  const query = {
    status: listed(status.wanted),
    // What is ok has no cause, unless its client left. The API does not filter by it.
    outcome: selected(outcomes) ?? (causes.wanted.length > 0 ? '!ok' : undefined),
    code: selected(codes),
    model: selected(models),
    took_over: took.over,
    kind: soleOf(kinds),
    project_id: soleOf(ofProjects),
    token_id: soleOf(ofTokens),
  } satisfies { [K in keyof EventStreamQuery]: string | undefined };
  const [isKind, isOfProject, isOfToken] = [fitsChoice(kinds), fitsChoice(ofProjects), fitsChoice(ofTokens)];
  const hasWords = fitsWords(reader);
  const tests: Test[] = [
    (event) => isKind(event.kind) && isOfProject(event.project_id) && isOfToken(event.token_id),
    (event) => hasStatus(event, status),
    requestTest(outcomes, ({ outcome }) => fitsChoice(outcomes)(outcome)),
    requestTest(causes, (event) => fitsPart(causes)(causeOf(event)?.why ?? null)),
    requestTest(codes, ({ code }) => fitsChoice(codes)(code)),
    requestTest(models, ({ model }) => fitsPart(models)(model)),
    requestTest(took, ({ duration_ms: ms }) => isWithin(ms, took)),
    (event) => hasWords(textsOf(event), [event.token_id, event.project_id, event.id]),
  ];
  return reader.reading(query, (event) => tests.every((test) => test(event)));
}

/** `failed` stands for the outcomes of all failures. */
function withFailures({ wanted, unwanted }: Selection): Selection {
  const expanded = (names: readonly string[]) =>
    names.flatMap((name) => (name === values.FAILED ? FAILED_OUTCOMES : [name]));
  return { wanted: unique(expanded(wanted)), unwanted: unique(expanded(unwanted)) };
}

const listed = (all: readonly string[]) =>
  all.length > 0 && all.length <= MAX_VALUES ? unique(all).join(',') : undefined;

/** In the syntax of the API: `a,b`, or `!a,b`. */
function selected({ wanted, unwanted }: Selection): string | undefined {
  if (wanted.length > 0) return listed(wanted);
  const others = listed(unwanted);
  return others && `!${others}`;
}

const soleOf = ({ wanted }: Selection) => (wanted.length === 1 ? wanted[0] : undefined);

/** A key of requests that the line has: then no change matches. */
function requestTest(
  given: Selection | { under?: string; over?: string },
  test: (event: WireRequestEvent) => boolean,
): Test {
  const isGiven = Object.values(given).some(
    (value: string | string[] | undefined) => value !== undefined && value.length > 0,
  );
  return (event) => !isGiven || (event.kind === REQUEST_EVENT_KIND && test(event));
}

function hasStatus(event: WireEvent, { wanted, unwanted }: Selection): boolean {
  if (event.kind !== REQUEST_EVENT_KIND) return wanted.length === 0;
  const is = (written: readonly string[]) => values.isOfStatus(event.status, written);
  return (wanted.length === 0 || is(wanted)) && !is(unwanted);
}

const isWithin = (ms: number, { under, over }: { under?: string; over?: string }) =>
  (over === undefined || ms > (tookMs(over) ?? 0)) && (under === undefined || ms < (tookMs(under) ?? 0));

function textsOf(event: WireEvent): (string | null)[] {
  const { kind, token_name: token, project_name: project, request_id: requestId } = event;
  const common = [kind, token, project, requestId];
  if (event.kind !== REQUEST_EVENT_KIND) return [...common, event.actor];
  const { method, path, status, code, error, outcome, model } = event;
  return [...common, `${method} ${path}`, String(status), code, error, outcome, model, causeOf(event)?.why ?? null];
}
