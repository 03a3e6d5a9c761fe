/**
 * The content of chats in the shape of OpenTelemetry's GenAI conventions (`gen-ai-input-messages.json`, `gen-ai-output-messages.json`).
 * What it has no shape for keeps its own members beside its `type`, which the schema allows.
 */
import { isObject, type JsonObject, objectIn, objectsIn } from './call.js';

interface Message {
  role: string;
  parts: JsonObject[];
  finish_reason?: string;
}

/** The messages of a chat completion's or a response's request. Undefined for any other body, and for one that was cut. */
export function inputMessagesOf(body: string | null): Message[] | undefined {
  const request = objectIn(body);
  if (!request) return undefined;
  const { messages, input } = request;
  if (typeof input === 'string') return [{ role: 'user', parts: [text(input)] }];
  return objectsIn(messages ?? input)?.map((message) => messageOf(message, 'user'));
}

/** The messages of the answer: a choice each. */
export function outputMessagesOf(body: string | null): Message[] | undefined {
  const answer = objectIn(body);
  const choices = objectsIn(answer?.['choices']);
  if (choices) return choices.map(choiceOf);
  const output = objectsIn(answer?.['output']);
  if (!output) return undefined;
  const parts = output.flatMap((item) => messageOf(item, 'assistant').parts);
  return [{ role: 'assistant', parts, finish_reason: answer?.['status'] === 'incomplete' ? 'length' : 'stop' }];
}

function choiceOf({ message, text: completed, finish_reason }: JsonObject): Message {
  const reason = typeof finish_reason === 'string' ? finish_reason : 'error';
  const spoken = isObject(message) ? messageOf(message, 'assistant') : { role: 'assistant', parts: partsOf(completed) };
  return { ...spoken, finish_reason: reason === 'tool_calls' ? 'tool_call' : reason };
}

/** A message, or an item of a response, some of which are calls of tools and their answers. */
function messageOf(message: JsonObject, otherwise: string): Message {
  const { role, content, tool_calls, type, call_id, output } = message;
  const spokenBy = typeof role === 'string' ? role : otherwise;
  if (type === 'function_call') return { role: 'assistant', parts: [toolCall(call_id, message)] };
  if (type === 'function_call_output') return { role: 'tool', parts: [toolResponse(call_id, output)] };
  if (role === 'tool') return { role, parts: [toolResponse(message['tool_call_id'], content)] };
  if (content === undefined && tool_calls === undefined)
    return { role: spokenBy, parts: [{ type: 'unknown', ...message }] };
  const calls = objectsIn(tool_calls) ?? [];
  const called = calls.map(({ id, function: of }) => toolCall(id, isObject(of) ? of : {}));
  return { role: spokenBy, parts: [...partsOf(content), ...called] };
}

const TEXTS: readonly unknown[] = ['text', 'input_text', 'output_text'];

function partsOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return [text(content)];
  return (objectsIn(content) ?? []).map((part) =>
    TEXTS.includes(part['type']) && typeof part['text'] === 'string'
      ? text(part['text'])
      : { type: 'unknown', ...part },
  );
}

const text = (content: string): JsonObject => ({ type: 'text', content });

const toolResponse = (id: unknown, response: unknown): JsonObject => ({
  type: 'tool_call_response',
  id,
  response: response ?? null,
});

/** Its arguments are JSON in a string; a model may spell it wrong. */
function toolCall(id: unknown, { name, arguments: spelled }: JsonObject): JsonObject {
  const read = typeof spelled === 'string' ? (objectIn(spelled) ?? spelled) : (spelled ?? null);
  return { type: 'tool_call', id, name: typeof name === 'string' ? name : '', arguments: read };
}
