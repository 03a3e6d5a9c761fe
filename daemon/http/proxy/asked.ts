/** What a request asks for, for the policy of its token. */
import type { IncomingMessage } from 'node:http';
import { boundedMemo } from '../../core/bounded-memo.js';
import { Asked } from '../../core/policy/policy.js';
import { framingOf, hasBody } from '../request-head.js';

/** Headers by which a client asks some servers for another method. */
const OVERRIDES_METHOD = /^x-(?:http-method-override|http-method|method-override|original-method)$/;
/**
 * By these a client chooses a more expensive service of Google or Amazon, has a gateway ask another provider or more than once, or asks some servers for
 * another path.
 */
const CHOOSES_SERVICE =
  /^(?:x-vertex-ai-llm-|x-amzn-bedrock-|x-litellm-|x-portkey-|helicone-|cf-aig-|x-original-url$|x-rewrite-url$)/;

const meaningOf = boundedMemo((header): 'type' | 'coding' | 'method' | 'service' | 'other' => {
  const name = header.toLowerCase();
  if (name === 'content-type') return 'type';
  if (name === 'content-encoding') return 'coding';
  if (OVERRIDES_METHOD.test(name)) return 'method';
  return CHOOSES_SERVICE.test(name) ? 'service' : 'other';
});

export function askedOf(req: IncomingMessage, isHandshake: boolean): Asked {
  const contentTypes: string[] = [];
  const contentCodings: string[] = [];
  let overridesMethod = false;
  let choosingHeader: string | null = null;
  const { rawHeaders } = req;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    const meaning = meaningOf(name);
    if (meaning === 'other') continue;
    if (meaning === 'type') contentTypes.push(value);
    else if (meaning === 'coding') contentCodings.push(value);
    else if (meaning === 'method') overridesMethod = true;
    else choosingHeader ??= name.toLowerCase();
  }
  return new Asked({
    method: req.method ?? '',
    target: req.url ?? '',
    isHandshake,
    hasBody: hasBody(framingOf(req)),
    contentTypes,
    contentCodings,
    overridesMethod,
    choosingHeader,
  });
}
