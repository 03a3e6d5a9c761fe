/** Response formats of the stand-in provider, with the fields that clients use. */
import type { ServerResponse } from 'node:http';

const CREATED = 1_700_000_000; // Seconds since the epoch. Clients require the field, but do not use its value.

export function json(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-request-id': 'req_upstream_1',
    ...headers,
  });
  res.end(text);
}

/** Streams a chat completion as server-sent events, one per item of `pieces`. Ends early if the client disconnects. */
export async function streamChat(
  res: ServerResponse,
  model: string,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  for await (const content of pieces) {
    if (res.destroyed) return;
    res.write(event(chunk(model, { content }, null)));
  }
  res.write(event(chunk(model, {}, 'stop')));
  res.end('data: [DONE]\n\n');
}

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

function chunk(model: string, delta: { content?: string }, finish_reason: 'stop' | null) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: CREATED,
    model,
    choices: [{ index: 0, delta, finish_reason }],
  };
}

export function completion(model: string, content: string, usage = { prompt: 3, completion: 2 }) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: CREATED,
    model,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: usage.prompt,
      completion_tokens: usage.completion,
      total_tokens: usage.prompt + usage.completion,
    },
  };
}

export function models(...ids: string[]) {
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: CREATED, owned_by: 'stand-in' })) };
}

/** @param body a multipart form that contains the file. */
export function uploadedFile(body: Buffer) {
  const form = body.toString('latin1');
  return {
    id: 'file-1',
    object: 'file',
    bytes: body.length,
    created_at: CREATED,
    filename: /filename="([^"]+)"/.exec(form)?.[1],
    purpose: 'assistants',
    status: 'processed',
  };
}

export function problem(message: string, code: string) {
  return { error: { message, type: 'invalid_request_error', param: null, code } };
}
