/** What a response may be, given everything that the model knows. */
import type { RawResponse } from '../raw.js';
import type { Call } from './call.js';
import { Violation } from './gates.js';
import type { ModelProject } from './tables.js';
import type { SentResponse } from './upstream.js';

export interface Facts {
  said: readonly SentResponse[];
  /** The project of a request. */
  projectOf: (requestId: string) => ModelProject | undefined;
  nowMs: number;
  /** Uses of the call's token before this step began. */
  askedBefore: number;
  /** Whether entries age by the model's clock. */
  agesByClock: boolean;
  instances: number;
}

export function judge(call: Call, answer: RawResponse, facts: Facts): 'hit' | 'use' | 'refusal' {
  const isHit = answer.header('x-proxy-cache') === 'hit';
  if (isHit && call.isAsked) fail(call, 'a hit that was sent upstream');
  const location = answer.header('content-location');
  if (location === undefined) {
    if (isHit) fail(call, 'a hit that the upstream never sent');
    judgeRefusal(call, answer, facts);
    return call.isAsked ? 'use' : 'refusal';
  }
  const said = facts.said[Number(location.replace('/said/', ''))];
  if (!said) fail(call, 'a response that the upstream never sent');
  if (facts.projectOf(said.ask.requestId) !== call.token.project) fail(call, "another project's response");
  judgePlace(call, said);
  judgeBody(call, answer, said, facts);
  if (isHit) judgeHit(call, said, facts);
  else if (said.ask.requestId !== call.id) fail(call, "a miss with another request's response");
  return isHit ? 'hit' : 'use';
}

/** Its own project's key, target, variant and body, and no version older than the client may know. */
function judgePlace({ asking, keys, known, id }: Call, said: SentResponse): void {
  const { ask } = said;
  const is = (what: string, isSo: boolean) => {
    if (!isSo) throw new Violation(`${id} got another request's response, by its ${what}`);
  };
  is('key', keys.has(ask.key));
  is('target', ask.target === asking.target);
  is('language', ask.lang === asking.lang);
  is('flavour', !said.varies || ask.flavour === asking.flavour);
  is('body', ask.body === asking.body);
  is('method', (ask.method === 'HEAD' ? 'GET' : ask.method) === (asking.method === 'HEAD' ? 'GET' : asking.method));
  is('version', asking.method === 'POST' || said.version >= known.version);
}

function judgeBody(call: Call, answer: RawResponse, said: SentResponse, { said: all }: Facts): void {
  if (answer.status === 304 || call.asking.method === 'HEAD' || answer.status === 204) return;
  const { id } = JSON.parse(answer.text) as { id: number };
  const original = all[id];
  if (original?.text !== answer.text) fail(call, 'a body that the upstream never completed');
  // A response that a 304 confirmed is unchanged and has the same tag.
  const isOwn = original === said || (said.status === 304 && original.etag === said.etag);
  if (!isOwn) fail(call, 'the headers of one response with the body of another');
}

function judgeHit(call: Call, said: SentResponse, facts: Facts): void {
  const { token, asking, known } = call;
  const { nowMs, askedBefore } = facts;
  if (!token.isActive || !token.project.isActive) fail(call, 'a hit for a token that would be refused');
  if (nowMs >= token.expiresAtMs) fail(call, 'a hit for an expired token');
  if (token.cap > 0 && askedBefore >= token.cap) fail(call, 'a hit for a token that reached its cap');
  if (said.lifetimeMs === null) fail(call, 'a hit with a response that must not be stored');
  if (said.wholeAtMs === null) fail(call, 'a hit with an incomplete response');
  if (said.ask.tick < known.purgedTick) fail(call, 'a hit with a response from before a purge');
  if (/no-cache|no-store/.test(asking.cacheControl) || asking.hasRange)
    fail(call, 'a hit for a request that forbids hits');
  if (asking.method === 'POST' && !asking.cacheControl.includes('public'))
    fail(call, 'a hit for a POST that did not opt in');
  if (!facts.agesByClock) return;
  const ageMs = nowMs - said.ask.atMs;
  if (ageMs >= said.lifetimeMs) fail(call, `a hit of ${ageMs} ms with a lifetime of ${said.lifetimeMs}`);
  const mostAgeMs = Number(/max-age=(\d+)/.exec(asking.cacheControl)?.[1] ?? Infinity) * 1000;
  if (ageMs + said.upstreamAgeMs > mostAgeMs) fail(call, 'a hit older than the request permits');
}

function judgeRefusal(call: Call, answer: RawResponse, { askedBefore, nowMs, instances }: Facts): void {
  const { token, known } = call;
  const isUndisturbed =
    known.wasFine &&
    token.changes === known.tokenChanges &&
    token.project.changes === known.projectChanges &&
    nowMs < token.expiresAtMs;
  switch (answer.status) {
    case 401:
    case 403:
      if (isUndisturbed) fail(call, `a usable token was refused with ${answer.status}`);
      return;
    case 429: // Another instance may hold the remaining units.
      if (instances === 1 && token.asked < token.cap) fail(call, 'refused below the cap');
      return;
    case 504:
      if (!call.asking.cacheControl.includes('only-if-cached') && !call.isAsked)
        fail(call, 'timed out without an upstream request');
      return;
    case 502:
      if (!call.isAsked) fail(call, 'failed because of an upstream that it never reached');
      return;
    default:
      fail(call, `got ${answer.status}, ${askedBefore} uses`);
  }
}

function fail({ id, asking }: Call, what: string): never {
  throw new Violation(`${what} (${id}: ${JSON.stringify(asking)})`);
}
