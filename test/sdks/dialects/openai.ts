/** The API of OpenAI, Azure, Groq and Mistral (developers.openai.com/api/reference). */
import { completion, json, models, problem } from '../../../daemon/demo/responses.js';
import { type Asked, type Dialect, replyTo, sendEvents, streamedReplyTo, TEXT, VECTOR } from './dialect.js';
import { responded, responseEvents } from './openai-responses.js';

const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } };
const toolCall = ({ tool, input }: { tool: string; input: object }) => ({
  id: 'call_1',
  type: 'function',
  function: { name: tool, arguments: JSON.stringify(input) },
});

export const OPENAI: Dialect = {
  respond(res, path, asked) {
    if (path === '/v1/models') json(res, 200, models('gpt-test'));
    else if (path === '/v1/embeddings') json(res, 200, embedding(asked));
    else if (path === '/v1/responses') {
      if (asked.stream) sendEvents(res, responseEvents(asked).map(asEvent));
      else json(res, 200, responded(asked));
    } else if (path !== '/v1/chat/completions') json(res, 404, problem(`no such path: ${path}`, 'unknown_url'));
    else if (asked.stream) sendEvents(res, chunks(asked));
    else json(res, 200, response(asked));
  },
  failure: ({ message, type, code }) => ({ error: { message, type, code, param: null } }),
  firstEvents: chunk('cut', { choices: [choice({ role: 'assistant', content: 'Hel' })] }),
};

const asEvent = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

function response(asked: Asked): object {
  const reply = replyTo(asked);
  const answer = { ...completion(asked.model, 'text' in reply ? reply.text : TEXT), usage: USAGE };
  if ('text' in reply) return answer;
  const message = { role: 'assistant', content: null, tool_calls: [toolCall(reply)] };
  return { ...answer, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
}

function chunks(asked: Asked): string[] {
  const { model, stream_options: options } = asked;
  const reply = streamedReplyTo(asked);
  const isCall = 'tool' in reply;
  const deltas = isCall
    ? [{ role: 'assistant', tool_calls: [{ index: 0, ...toolCall(reply) }] }]
    : reply.pieces.map((content) => ({ content }));
  return [
    ...deltas.map((delta) => chunk(model, { choices: [choice(delta)] })),
    chunk(model, { choices: [choice({}, isCall ? 'tool_calls' : 'stop')] }),
    ...(options?.include_usage ? [chunk(model, { choices: [], usage: USAGE })] : []),
    'data: [DONE]\n\n',
  ];
}

function choice(delta: object, finishReason: string | null = null) {
  return { index: 0, delta, finish_reason: finishReason };
}

function chunk(model: string, rest: object): string {
  const fields = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model };
  return `data: ${JSON.stringify({ ...fields, ...rest })}\n\n`;
}

function embedding({ model, encoding_format: format }: Asked): object {
  const values = format === 'base64' ? Buffer.from(Float32Array.from(VECTOR).buffer).toString('base64') : VECTOR;
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  // OpenAI sends no ID, but Mistral's SDK requires one.
  return { id: 'embd-1', object: 'list', data: [{ object: 'embedding', index: 0, embedding: values }], model, usage };
}
