/** What is needed of a request to judge whether it fits a budget. */
import { type Bound, type Boundless, boundOf, type ModelLimits } from '../../core/budget/bound.js';
import type { OwnedBudget } from '../../core/budget/owned-budget.js';
import { costNotBounded } from '../../core/budget/refusals.js';
import type { Asked } from '../../core/policy/policy.js';
import type { RequestBody } from './body.js';

/** A hard budget has to read all of a body before any of it is forwarded. */
const MAX_BOUNDED_BYTES = 8 * 1024 * 1024;
/** The others only look for the model in it. */
const MAX_ESTIMATED_BYTES = 1024 * 1024;

/** Up to which size a body is waited for. */
export function mostToJudge(budgets: readonly OwnedBudget[], declaredBytes: number | null): number {
  const most = budgets.some(({ mode }) => mode === 'hard') ? MAX_BOUNDED_BYTES : MAX_ESTIMATED_BYTES;
  return (declaredBytes ?? 0) <= most ? most : 0;
}

/** The most that a request can use. @param host of the provider. */
export function boundOfRequest(
  { head, facts }: Asked,
  host: string,
  body: RequestBody,
  limitsOf: (model: string) => ModelLimits | null,
): Bound | Boundless {
  const { method, target, contentTypes, contentCodings, overridesMethod } = head;
  if (facts.route.escapes) return { why: 'what it starts goes on after it' };
  if (overridesMethod) return { why: 'a header asks for another method' };
  if (contentCodings.some((coding) => !/^ *(?:identity)? *$/i.test(coding))) return { why: 'its body is compressed' };
  if (contentTypes.length > 1) return { why: 'it has more than one Content-Type header' };
  if (body !== null && !Buffer.isBuffer(body)) return { why: 'its body is larger than 8 MiB' };
  return boundOf({ method, target, host, contentType: contentTypes[0] ?? null, body }, limitsOf);
}

const UNBOUNDED = 'on a WebSocket each response continues what came before it';

/** For a message on a WebSocket. */
export const noBound = (): Boundless => ({ why: UNBOUNDED });

/** What is asked for on a WebSocket has no bound. @throws {Refusal} `cost_not_bounded` */
export function checkBoundable(budgets: readonly OwnedBudget[]): void {
  const hard = budgets.find(({ mode }) => mode === 'hard');
  if (hard) throw costNotBounded(UNBOUNDED, hard);
}
