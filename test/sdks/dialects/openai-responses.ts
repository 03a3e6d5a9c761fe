/** OpenAI's Responses API: the events of a stream, which are also the messages of a WebSocket (developers.openai.com/api/reference). */
import { type Asked, halves, replyTo } from './dialect.js';

/** A request may ask that nothing is generated: it only prepares those that follow. */
const isWarmUp = ({ generate }: Asked) => generate === false;

const USAGE = {
  input_tokens: 3,
  input_tokens_details: { cached_tokens: 1 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 5,
};
const NO_USAGE = {
  ...USAGE,
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
};

type Item = ReturnType<typeof itemOf>;

/** The whole response. */
export const responded = (asked: Asked): object => response(asked, 'completed', [itemOf(asked)]);

/** The events of its stream, in their order. */
export function responseEvents(asked: Asked): ({ type: string } & Record<string, unknown>)[] {
  const items = isWarmUp(asked) ? [] : [itemOf(asked)];
  return [
    { type: 'response.created', response: response(asked, 'in_progress', []) },
    ...items.flatMap((item) => [
      { type: 'response.output_item.added', output_index: 0, item: begun(item) },
      ...eventsOf(item),
      { type: 'response.output_item.done', output_index: 0, item },
    ]),
    { type: 'response.completed', response: response(asked, 'completed', items) },
  ].map((event, at) => ({ ...event, sequence_number: at }));
}

function response(asked: Asked, status: string, output: Item[]) {
  const { model } = asked;
  const usage = isWarmUp(asked) ? NO_USAGE : USAGE;
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_700_000_000,
    status,
    model,
    output,
    error: null,
    usage: status === 'completed' ? usage : null,
  };
}

function itemOf(asked: Asked) {
  const reply = replyTo(asked);
  if ('tool' in reply) {
    const { tool, input } = reply;
    const rest = { call_id: 'call_1', name: tool, arguments: JSON.stringify(input), status: 'completed' };
    return { type: 'function_call' as const, id: 'fc_1', ...rest };
  }
  const content = [{ type: 'output_text', text: reply.text, annotations: [] }];
  return { type: 'message' as const, id: 'msg_1', role: 'assistant', status: 'completed', content };
}

const begun = (item: Item) => ({
  ...item,
  status: 'in_progress',
  ...(item.type === 'message' ? { content: [] } : { arguments: '' }),
});

function eventsOf(item: Item): ({ type: string } & Record<string, unknown>)[] {
  const where = { item_id: item.id, output_index: 0 };
  if (item.type === 'function_call') {
    return [
      ...halves(item.arguments).map((delta) => ({ type: 'response.function_call_arguments.delta', ...where, delta })),
      { type: 'response.function_call_arguments.done', ...where, arguments: item.arguments },
    ];
  }
  const [part = { type: 'output_text', text: '', annotations: [] }] = item.content;
  const piece = { ...where, content_index: 0 };
  return [
    { type: 'response.content_part.added', ...piece, part: { ...part, text: '' } },
    ...halves(part.text).map((delta) => ({ type: 'response.output_text.delta', ...piece, delta })),
    { type: 'response.output_text.done', ...piece, text: part.text },
    { type: 'response.content_part.done', ...piece, part },
  ];
}
