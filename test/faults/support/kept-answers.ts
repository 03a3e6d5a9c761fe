/** What the invariants say of answers that come from the cache: each is one that the upstream gave, whole, and that may be kept. */
import { expect } from 'chai';
import { finalAnswerOf, isAnswerWhole, statusOf } from './transcripts.js';
import type { Exchange } from './upstream.js';
import { type Message, valuesOf } from './wire.js';

/** A request, as far as it matters to which answer is its own. */
export interface Asked {
  method: string;
  /** Byte for byte. */
  target: string;
}

export const isHit = (answer: Message) => valuesOf(answer, 'x-proxy-cache').includes('hit');

/** Whether the upstream said that what was kept is still right, and the client was given that. */
export const confirms = (given: Message, answer: Message) => statusOf(given) === 304 && statusOf(answer) !== 304;

/** @param ofProject all that its project asked of the upstream. */
export function expectGivenBefore(answer: Message, { method, target }: Asked, ofProject: readonly Exchange[]): void {
  const asked = method === 'HEAD' ? 'GET' : method;
  const alike = ofProject.filter((exchange) => exchange.method === asked && exchange.target === target);
  const given = alike.filter((exchange) => mayBeKept(exchange));
  expect(given, `I5: what the upstream gave to ${asked} ${target} and may be kept`).not.to.have.lengthOf(0);
  if (statusOf(answer) === 304 || given.some(({ isSentKept }) => !isSentKept)) return;
  const isOne = given.some((exchange) => isThat(answer, finalAnswerOf(exchange), method));
  expect(isOne, `I5: the kept answer to ${method} ${target} is one of the upstream's, byte for byte`).to.equal(true);
}

function isThat(answer: Message, given: Message | undefined, method: string): boolean {
  if (given === undefined || statusOf(given) !== statusOf(answer)) return false;
  if (method === 'HEAD') return valuesOf(answer, 'content-length').join() === String(given.body.length);
  return answer.isWhole
    ? given.body.equals(answer.body)
    : given.body.subarray(0, answer.body.length).equals(answer.body);
}

/** The least that is asked of an answer before others may see it; what each field means is for the tests to say. */
function mayBeKept(exchange: Exchange): boolean {
  const given = finalAnswerOf(exchange);
  if (!given || given.endsWithConnection || !isAnswerWhole(exchange)) return false;
  const cacheControl = valuesOf(given, 'cache-control')
    .join()
    .toLowerCase()
    .replace(/"(?:[^"\\]|\\.)*"/g, '');
  return !/\bno-store\b|\bprivate\b/.test(cacheControl) && valuesOf(given, 'set-cookie').length === 0;
}
