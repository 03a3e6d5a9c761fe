/** Anthropic's API (platform.claude.com/docs/en/api). */
import { json } from '../../../daemon/demo/responses.js';
import { type Asked, type Dialect, halves, replyTo, sendEvents, streamedReplyTo } from './dialect.js';

const USAGE = {
  input_tokens: 3,
  cache_creation_input_tokens: 5,
  cache_read_input_tokens: 7,
  cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 0 },
  output_tokens: 2,
  service_tier: 'standard',
};
const MODEL = { type: 'model', id: 'claude-test', display_name: 'Claude Test', created_at: '2030-01-01T00:00:00Z' };

export const ANTHROPIC: Dialect = {
  respond(res, path, asked) {
    const headers = { 'request-id': 'req_upstream_1' };
    if (path === '/v1/models') {
      const { id } = MODEL;
      json(res, 200, { data: [MODEL], has_more: false, first_id: id, last_id: id }, headers);
    } else if (path === '/v1/messages/count_tokens') json(res, 200, { input_tokens: 3 }, headers);
    else if (path !== '/v1/messages') json(res, 404, notFound(path), headers);
    else if (asked.stream) sendEvents(res, events(asked));
    else json(res, 200, message(asked), headers);
  },
  failure: ({ message: said, type }) => ({
    type: 'error',
    error: { type, message: said },
    request_id: 'req_upstream_1',
  }),
  firstEvents: events({ model: 'cut' }).slice(0, 4).join(''),
};

const notFound = (path: string) => ({ type: 'error', error: { type: 'not_found_error', message: path } });

function message(asked: Asked): object {
  const reply = replyTo(asked);
  const content =
    'tool' in reply
      ? { type: 'tool_use', id: 'toolu_1', name: reply.tool, input: reply.input }
      : { type: 'text', text: reply.text };
  const reason = 'tool' in reply ? 'tool_use' : 'end_turn';
  return { ...empty(asked.model), content: [content], stop_reason: reason, usage: USAGE };
}

function empty(model: string) {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function events(asked: Asked): string[] {
  const reply = streamedReplyTo(asked);
  const isCall = 'tool' in reply;
  const block = isCall ? { type: 'tool_use', id: 'toolu_1', name: reply.tool, input: {} } : { type: 'text', text: '' };
  const deltas = isCall
    ? halves(JSON.stringify(reply.input)).map((json) => ({ type: 'input_json_delta', partial_json: json }))
    : reply.pieces.map((text) => ({ type: 'text_delta', text }));
  const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null };
  return [
    { type: 'message_start', message: { ...empty(asked.model), usage: { ...USAGE, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'ping' },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: end, usage: { output_tokens: USAGE.output_tokens } },
    { type: 'message_stop' },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}
