/** What a request asks for, for the policy of its token. */
import type { IncomingMessage } from 'node:http';
import { Asked } from '../../core/policy/policy.js';
import { framingOf, hasBody } from '../request-head.js';

/** Headers by which a client asks some servers for another method. */
const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-method',
]);

export function askedOf(req: IncomingMessage, isHandshake: boolean): Asked {
  const contentTypes: string[] = [];
  const contentCodings: string[] = [];
  let overridesMethod = false;
  const { rawHeaders } = req;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i]?.toLowerCase(), rawHeaders[i + 1]];
    if (name === 'content-type') contentTypes.push(value);
    else if (name === 'content-encoding') contentCodings.push(value);
    else if (METHOD_OVERRIDES.has(name)) overridesMethod = true;
  }
  return new Asked({
    method: req.method ?? '',
    target: req.url ?? '',
    isHandshake,
    hasBody: hasBody(framingOf(req)),
    contentTypes,
    contentCodings,
    overridesMethod,
  });
}
