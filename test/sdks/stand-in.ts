/** The provider for the SDKs, directly and through the daemon. Its response depends on the requested model. */
import type { IncomingMessage } from 'node:http';
import { json, uploadedFile } from '../../daemon/demo/responses.js';
import type { Answer } from '../support/provider.js';
import { ANTHROPIC } from './dialects/anthropic.js';
import type { Asked, Dialect, Failure } from './dialects/dialect.js';
import { callIn, GOOGLE } from './dialects/google.js';
import { OPENAI } from './dialects/openai.js';

const FAILURES: Record<string, Failure> = {
  'fail-400': { status: 400, type: 'invalid_request_error', code: 'bad_value', message: 'that is no temperature' },
  'fail-401': { status: 401, type: 'authentication_error', code: 'invalid_api_key', message: 'wrong key' },
  'fail-429': { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'too much at once' },
  'fail-500': { status: 500, type: 'server_error', code: null, message: 'the server had an error' },
};

/** A model that never responds. */
export const HELD = 'held';

/**
 * @param onCut called when a stream of the model `cut` has started. The stream continues after its promise resolves.
 * @param onHang called for a request with the model `hang`, which never gets a response.
 */
export function standIn(onCut: () => Promise<unknown>, onHang: () => void): Answer {
  return async (req, res, { url, body }) => {
    const path = ofOpenAi(new URL(url, 'http://provider').pathname);
    const dialect = dialectOf(req);
    for (const [name, value] of keysIn(req)) res.setHeader(name, value);
    if (path === '/v1/files') {
      json(res, 200, uploadedFile(body));
      return;
    }
    // In Google's API, the model is in the path.
    const asked: Asked = { model: callIn(path).model, ...(body.length > 0 && (JSON.parse(body.toString()) as object)) };
    const { model } = asked;
    // Mistral's API reports the usage of every stream.
    if (/mistral-client/.test(req.headers['user-agent'] ?? '')) asked.stream_options = { include_usage: true };
    const failure = FAILURES[model];
    if (failure) {
      // So that the SDK retries soon.
      json(res, failure.status, dialect.failure(failure), { 'retry-after-ms': '10' });
    } else if (model === 'hang') {
      onHang();
    } else if (model === HELD) {
      // Its slot is taken until the daemon stops.
    } else if (model === 'cut') {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(dialect.firstEvents);
      await onCut();
    } else {
      dialect.respond(res, path, asked);
    }
  };
}

/** Headers in which a provider gets a key. */
export const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

/** A careless provider sends the keys that it got. They must not reach clients. */
const keysIn = (req: IncomingMessage): [string, string][] =>
  KEY_HEADERS.flatMap((name): [string, string][] => {
    const value = req.headers[name];
    return typeof value === 'string'
      ? [
          [name, value],
          ['x-seen', `${name}: ${value}`],
        ]
      : [];
  });

function dialectOf({ headers }: IncomingMessage): Dialect {
  if ('x-goog-api-key' in headers) return GOOGLE;
  return 'anthropic-version' in headers ? ANTHROPIC : OPENAI;
}

/** The path of OpenAI's API for one of Azure (`/openai/deployments/MODEL/…`, `/openai/…`) or Groq (`/openai/v1/…`). */
const ofOpenAi = (path: string) => path.replace(/^\/openai(?:\/deployments\/[^/]+|\/v1)?(?=\/)/, '/v1');
