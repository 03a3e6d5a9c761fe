/** The provider for the SDKs, directly and through the daemon. Its response depends on the requested model. */
import type { ServerResponse } from 'node:http';
import { completion, json, models, problem, streamChat, uploadedFile } from '../../daemon/demo/responses.js';
import type { Answer } from '../support/provider.js';

interface Asked {
  model: string;
  stream?: boolean;
  tools?: unknown[];
  encoding_format?: string;
}

const FAILURES: Record<string, { status: number; type: string; code: string | null; message: string }> = {
  'fail-400': { status: 400, type: 'invalid_request_error', code: 'bad_value', message: 'that is no temperature' },
  'fail-401': { status: 401, type: 'invalid_request_error', code: 'invalid_api_key', message: 'wrong key' },
  'fail-429': { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'too much at once' },
  'fail-500': { status: 500, type: 'server_error', code: null, message: 'the server had an error' },
};

/**
 * @param onCut called when a stream of the model `cut` has started. The stream continues after its promise resolves.
 * @param onHang called for a request with the model `hang`, which never gets a response.
 */
export function standIn(onCut: () => Promise<unknown>, onHang: () => void): Answer {
  return async (req, res, { url, body }) => {
    const path = new URL(url, 'http://provider').pathname;
    if (path === '/v1/models') {
      json(res, 200, models('gpt-test'));
      return;
    }
    if (path === '/v1/files') {
      json(res, 200, uploadedFile(body));
      return;
    }
    const asked = JSON.parse(body.toString()) as Asked;
    const failure = FAILURES[asked.model];
    if (failure) {
      const { status, ...error } = failure;
      // So that the SDK retries soon.
      json(res, status, { type: 'error', error: { ...error, param: null } }, { 'retry-after-ms': '10' });
    } else if (asked.model === 'hang') {
      onHang();
    } else if (asked.model === 'cut') {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(path === '/v1/messages' ? messageEvents().slice(0, 3).join('') : `data: ${FIRST}\n\n`);
      await onCut();
    } else if (path === '/v1/embeddings') {
      embed(res, asked);
    } else if (path === '/v1/messages') {
      message(res, asked);
    } else if (path === '/v1/chat/completions') {
      await chat(res, asked);
    } else {
      json(res, 404, problem(`no such path: ${path} (${req.method ?? ''})`, 'unknown_url'));
    }
  };
}

const FIRST = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'cut',
  choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' }, finish_reason: null }],
});

const TOOL_INPUT = { city: 'Wörgl' };

async function chat(res: ServerResponse, { model, stream, tools }: Asked): Promise<void> {
  if (stream) {
    await streamChat(res, model, ['Hel', 'lo ', 'wörld']);
    return;
  }
  const answer = completion(model, 'Hello there');
  if (!tools) {
    json(res, 200, answer);
    return;
  }
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: JSON.stringify(TOOL_INPUT) } };
  const choice = {
    index: 0,
    message: { role: 'assistant', content: null, tool_calls: [call] },
    finish_reason: 'tool_calls',
  };
  json(res, 200, { ...answer, choices: [choice] });
}

function embed(res: ServerResponse, { model, encoding_format: format }: Asked): void {
  const values = [0.5, -0.25, 0.125]; // Exact in 32 bits, too.
  const embedding = format === 'base64' ? Buffer.from(Float32Array.from(values).buffer).toString('base64') : values;
  const usage = { prompt_tokens: 1, total_tokens: 1 };
  json(res, 200, { object: 'list', data: [{ object: 'embedding', index: 0, embedding }], model, usage });
}

/** A response of the Anthropic API. */
function message(res: ServerResponse, { model, stream, tools }: Asked): void {
  if (stream) {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.end(messageEvents().join(''));
    return;
  }
  const content = tools
    ? { type: 'tool_use', id: 'toolu_1', name: 'weather', input: TOOL_INPUT }
    : { type: 'text', text: 'Hello there' };
  json(res, 200, { ...MESSAGE, model, content: [content], stop_reason: tools ? 'tool_use' : 'end_turn' });
}

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-test',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 2 },
};

function messageEvents(): string[] {
  const delta = (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  return [
    { type: 'message_start', message: MESSAGE },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    delta('Hel'),
    delta('lo wörld'),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}
