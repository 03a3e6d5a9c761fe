/** Google's Gemini API (ai.google.dev/api). Its SDKs use the version `v1beta`, and newer ones `v1`. */
import { json } from '../../../daemon/demo/responses.js';
import { type Asked, type Dialect, type Reply, replyTo, sendEvents, streamedReplyTo, VECTOR } from './dialect.js';

const USAGE = {
  promptTokenCount: 3,
  candidatesTokenCount: 2,
  totalTokenCount: 5,
  cachedContentTokenCount: 1,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 3 }],
};
const MODEL = { name: 'models/gemini-test', version: '001', displayName: 'Gemini Test', inputTokenLimit: 1_000 };

export const GOOGLE: Dialect = {
  respond(res, path, asked) {
    const { model, method } = callIn(path);
    if (/^\/v1(?:beta)?\/models$/.test(path)) json(res, 200, { models: [MODEL] });
    else if (method === 'countTokens') json(res, 200, { totalTokens: 3 });
    else if (method === 'batchEmbedContents') json(res, 200, { embeddings: [{ values: VECTOR }] });
    else if (method === 'embedContent') json(res, 200, { embedding: { values: VECTOR } });
    else if (method === 'streamGenerateContent') sendEvents(res, events(model, asked));
    else if (method === 'generateContent') json(res, 200, response(model, [part(replyTo(asked))]));
    else json(res, 404, { error: { code: 404, message: `no such path: ${path}`, status: 'NOT_FOUND' } });
  },
  failure: ({ status, message }) => ({ error: { code: status, message, status: STATUSES[status] } }),
  firstEvents: event('cut', { text: 'Hel' }),
};

const STATUSES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
};

function part(reply: Reply): object {
  return 'tool' in reply ? { functionCall: { name: reply.tool, args: reply.input } } : { text: reply.text };
}

/** Model and method of a path, for example `/v1beta/models/gemini-test:generateContent`. */
export function callIn(path: string): { model: string; method: string } {
  const [, model = '', method = ''] = /^\/v1(?:beta)?\/models\/([^:/]+):(\w+)$/.exec(path) ?? [];
  return { model, method };
}

function response(model: string, parts: object[], finishReason: string | null = 'STOP'): object {
  const candidate = { content: { parts, role: 'model' }, ...(finishReason && { finishReason }), index: 0 };
  return { candidates: [candidate], usageMetadata: USAGE, modelVersion: model, responseId: 'response-1' };
}

/** Google separates events with CRLF. */
function event(model: string, reply: Reply, finishReason: string | null = null): string {
  return `data: ${JSON.stringify(response(model, [part(reply)], finishReason))}\r\n\r\n`;
}

function events(model: string, asked: Asked): string[] {
  const reply = streamedReplyTo(asked);
  const replies = 'tool' in reply ? [reply] : reply.pieces.map((text) => ({ text }));
  return replies.map((each, at) => event(model, each, at === replies.length - 1 ? 'STOP' : null));
}
