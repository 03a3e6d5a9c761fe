/** What the budgets need to know of a request. */
import { type Bound, type Boundless, boundOf, type ModelLimits } from '../../core/budget/bound.js';
import type { OwnedBudget } from '../../core/budget/owned-budget.js';
import { costNotBounded } from '../../core/budget/refusals.js';
import type { Asked } from '../../core/policy/policy.js';
import { pathOf } from '../request-head.js';
import type { RequestBody } from './body.js';

/** For a hard budget, the whole body is read before any of it is forwarded. */
const MAX_BOUNDED_BYTES = 8 * 1024 * 1024;
/** For other budgets, only the model is looked for in the body. */
const MAX_ESTIMATED_BYTES = 1024 * 1024;

/** The size up to which a body is waited for, in bytes; 0: it is not waited for. */
export function mostToJudge(budgets: readonly OwnedBudget[], declaredBytes: number | null): number {
  const most = budgets.some(({ mode }) => mode === 'hard') ? MAX_BOUNDED_BYTES : MAX_ESTIMATED_BYTES;
  return (declaredBytes ?? 0) <= most ? most : 0;
}

/** Without a body or a header that asks for another method. */
const READS_OR_DELETES: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);
/** As it was sent, no server takes it for another path. */
const PLAIN_PATH = /^(?:\/[\w-][\w.:@-]*)+$/;
/** At some providers these run a model (Mistral's conversations, LangGraph's `/runs/wait`), or are paid for by their size. */
const MAY_COST = /\/(?:conversations|vector_stores|runs(?!\/run_))(?:\/|$)/;

/** Whether a request is known to cost nothing, however a server reads it. All others reserve what they may cost. */
export function isFree({ head, facts }: Asked): boolean {
  const { method, target, hasBody, overridesMethod } = head;
  if (overridesMethod || facts.problem !== null) return false;
  if (method !== 'POST') return READS_OR_DELETES.has(method) && !hasBody;
  if (facts.route.mustNameModel) return false;
  const path = pathOf(target);
  return PLAIN_PATH.test(path) && !MAY_COST.test(path);
}

/** Whether it starts something that goes on, and costs something, after it has ended. Some of it needs no body. */
export const startsMore = ({ head, facts }: Asked): boolean =>
  facts.route.escapes && (head.method === 'POST' || head.hasBody);

/** What a request says of its cost. */
interface SentRequest {
  asked: Asked;
  /** Path and query for the provider. */
  target: string;
  body: RequestBody;
  /** Of the provider. */
  host: string;
}

const IS_PLAIN = /^ *(?:identity)? *$/i;

/** The most that a request can use. */
export function boundOfRequest(
  { asked: { head, facts }, target, body, host }: SentRequest,
  limitsOf: (model: string) => ModelLimits | null,
): Bound | Boundless {
  const { method, contentTypes, contentCodings, overridesMethod, choosingHeader } = head;
  if (facts.route.escapes) return { why: 'it starts something that continues after its response' };
  if (overridesMethod) return { why: 'a header asks for another method' };
  if (choosingHeader !== null) return { why: `the header ${choosingHeader} may choose a more expensive service` };
  for (const coding of contentCodings) if (!IS_PLAIN.test(coding)) return { why: 'its body is compressed' };
  if (contentTypes.length > 1) return { why: 'it has more than one Content-Type header' };
  if (body !== null && !Buffer.isBuffer(body)) return { why: 'its body is larger than 8 MiB' };
  return boundOf({ method, target, host, contentType: contentTypes[0] ?? null, body }, limitsOf);
}

const UNBOUNDED = 'a response on a WebSocket includes earlier messages as input';

/** For a message on a WebSocket. */
export const noBound = (): Boundless => ({ why: UNBOUNDED });

/** Responses on a WebSocket have no bound. @throws {Refusal} `cost_not_bounded` */
export function checkBoundable(budgets: readonly OwnedBudget[]): void {
  const hard = budgets.find(({ mode }) => mode === 'hard');
  if (hard) throw costNotBounded(UNBOUNDED, hard);
}
