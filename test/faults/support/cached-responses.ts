/** The invariants of responses from the cache: each is a complete, storable response that the upstream gave earlier. */
import { expect } from 'chai';
import { finalResponseOf, isResponseComplete, statusOf } from './transcripts.js';
import type { Exchange } from './upstream.js';
import { type Message, valuesOf } from './wire.js';

/** A request, as far as it decides which response belongs to it. */
export interface SentRequest {
  method: string;
  /** Byte for byte. */
  target: string;
}

export const isHit = (answer: Message) => valuesOf(answer, 'x-proxy-cache').includes('hit');

/** Whether the upstream confirmed the stored response with a 304, and the client received the stored response. */
export const isRevalidated = (given: Message, answer: Message) => statusOf(given) === 304 && statusOf(answer) !== 304;

/** @param ofProject all requests of its project that reached the upstream. */
export function expectEarlierResponse(
  answer: Message,
  { method, target }: SentRequest,
  ofProject: readonly Exchange[],
): void {
  const asked = method === 'HEAD' ? 'GET' : method;
  const alike = ofProject.filter((exchange) => exchange.method === asked && exchange.target === target);
  const given = alike.filter((exchange) => isStorable(exchange));
  expect(given, `I5: what the upstream gave to ${asked} ${target} and may be stored`).not.to.have.lengthOf(0);
  if (statusOf(answer) === 304 || given.some(({ isSentComplete }) => !isSentComplete)) return;
  const isOne = given.some((exchange) => isSameResponse(answer, finalResponseOf(exchange), method));
  expect(isOne, `I5: the cached response to ${method} ${target} is one of the upstream's, byte for byte`).to.equal(
    true,
  );
}

function isSameResponse(answer: Message, given: Message | undefined, method: string): boolean {
  if (given === undefined || statusOf(given) !== statusOf(answer)) return false;
  if (method === 'HEAD') return valuesOf(answer, 'content-length').join() === String(given.body.length);
  return answer.isComplete
    ? given.body.equals(answer.body)
    : given.body.subarray(0, answer.body.length).equals(answer.body);
}

/** The minimum conditions for a response that other clients may get. The tests show what each header means. */
function isStorable(exchange: Exchange): boolean {
  const given = finalResponseOf(exchange);
  if (!given || given.endsWithConnection || !isResponseComplete(exchange)) return false;
  const cacheControl = valuesOf(given, 'cache-control')
    .join()
    .toLowerCase()
    .replace(/"(?:[^"\\]|\\.)*"/g, '');
  return !/\bno-store\b|\bprivate\b/.test(cacheControl) && valuesOf(given, 'set-cookie').length === 0;
}
