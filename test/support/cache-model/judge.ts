/** What an answer may be, given all that the model knows. */
import type { RawAnswer } from '../raw.js';
import type { Call } from './call.js';
import { Violation } from './gates.js';
import type { ModelProject } from './tables.js';
import type { Said } from './upstream.js';

export interface Facts {
  said: readonly Said[];
  /** Of a request. */
  projectOf: (requestId: string) => ModelProject | undefined;
  nowMs: number;
  /** Uses of the call's token before this step began. */
  askedBefore: number;
  /** Whether entries grow old by the model's clock. */
  agesByClock: boolean;
  instances: number;
}

export function judge(call: Call, answer: RawAnswer, facts: Facts): 'hit' | 'use' | 'refusal' {
  const isHit = answer.header('x-proxy-cache') === 'hit';
  if (isHit && call.isAsked) fail(call, 'a hit for which the upstream was asked');
  const location = answer.header('content-location');
  if (location === undefined) {
    if (isHit) fail(call, 'a hit that nobody said');
    judgeRefusal(call, answer, facts);
    return call.isAsked ? 'use' : 'refusal';
  }
  const said = facts.said[Number(location.replace('/said/', ''))];
  if (!said) fail(call, 'nobody said that');
  if (facts.projectOf(said.ask.requestId) !== call.token.project) fail(call, "another project's answer");
  judgePlace(call, said);
  judgeBody(call, answer, said, facts);
  if (isHit) judgeHit(call, said, facts);
  else if (said.ask.requestId !== call.id) fail(call, 'a miss answered with what another one got');
  return isHit ? 'hit' : 'use';
}

/** Its own project's key, target, variant and body, and no older version than the client may know of. */
function judgePlace({ asking, keys, known, id }: Call, said: Said): void {
  const { ask } = said;
  const is = (what: string, isSo: boolean) => {
    if (!isSo) throw new Violation(`${id} was given another's answer, by its ${what}`);
  };
  is('key', keys.has(ask.key));
  is('target', ask.target === asking.target);
  is('language', ask.lang === asking.lang);
  is('flavour', !said.varies || ask.flavour === asking.flavour);
  is('body', ask.body === asking.body);
  is('method', (ask.method === 'HEAD' ? 'GET' : ask.method) === (asking.method === 'HEAD' ? 'GET' : asking.method));
  is('version', asking.method === 'POST' || said.version >= known.version);
}

function judgeBody(call: Call, answer: RawAnswer, said: Said, { said: all }: Facts): void {
  if (answer.status === 304 || call.asking.method === 'HEAD' || answer.status === 204) return;
  const { id } = JSON.parse(answer.text) as { id: number };
  const original = all[id];
  if (original?.text !== answer.text) fail(call, 'a body that the upstream never sent whole');
  // What a 304 confirmed is as it was, and called the same.
  const isOwn = original === said || (said.status === 304 && original.etag === said.etag);
  if (!isOwn) fail(call, 'the header fields of one answer with the body of another');
}

function judgeHit(call: Call, said: Said, facts: Facts): void {
  const { token, asking, known } = call;
  const { nowMs, askedBefore } = facts;
  if (!token.isActive || !token.project.isActive) fail(call, 'a hit for a token that would be refused');
  if (nowMs >= token.expiresAtMs) fail(call, 'a hit for an expired token');
  if (token.cap > 0 && askedBefore >= token.cap) fail(call, 'a hit for a token whose cap is used up');
  if (said.lifetimeMs === null) fail(call, 'a hit with what must not be kept');
  if (said.wholeAtMs === null) fail(call, 'a hit with what did not arrive whole');
  if (said.ask.tick < known.purgedTick) fail(call, 'a hit with what was asked for before a purge');
  if (/no-cache|no-store/.test(asking.wish) || asking.hasRange) fail(call, 'a hit for a request that wanted none');
  if (asking.method === 'POST' && !asking.wish.includes('public')) fail(call, 'a hit for a POST not opted in');
  if (!facts.agesByClock) return;
  const ageMs = nowMs - said.ask.atMs;
  if (ageMs >= said.lifetimeMs) fail(call, `a hit ${ageMs} ms old that lives for ${said.lifetimeMs}`);
  const mostAgeMs = Number(/max-age=(\d+)/.exec(asking.wish)?.[1] ?? Infinity) * 1000;
  if (ageMs + said.upstreamAgeMs > mostAgeMs) fail(call, 'a hit older than was asked for');
}

function judgeRefusal(call: Call, answer: RawAnswer, { askedBefore, nowMs, instances }: Facts): void {
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
    case 429: // Another instance may hold what is left.
      if (instances === 1 && token.asked < token.cap) fail(call, 'refused below the cap');
      return;
    case 504:
      if (!call.asking.wish.includes('only-if-cached') && !call.isAsked) fail(call, 'timed out unasked');
      return;
    case 502:
      if (!call.isAsked) fail(call, 'failed by an upstream that it never asked');
      return;
    default:
      fail(call, `answered ${answer.status}, ${askedBefore} uses`);
  }
}

function fail({ id, asking }: Call, what: string): never {
  throw new Violation(`${what} (${id}: ${JSON.stringify(asking)})`);
}
