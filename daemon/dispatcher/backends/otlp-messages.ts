/**
 * Converts chat messages to the format of OpenTelemetry's GenAI conventions (`gen-ai-input-messages.json`, `gen-ai-output-messages.json`). Parts
 * that the format does not define keep their own members next to `type`, which the schema allows.
 */
import { isObject, type JsonObject, objectIn, objectsIn } from './call.js';

interface Message {
  role: string;
  parts: JsonObject[];
  finish_reason?: string;
}

/** The messages in the body of a chat completions or responses request. Undefined for other bodies, and if the body was cut. */
export function inputMessagesOf(body: string | null): Message[] | undefined {
  const request = objectIn(body);
  if (!request) return undefined;
  const { messages, input } = request;
  if (typeof input === 'string') return [{ role: 'user', parts: [text(input)] }];
  return objectsIn(messages ?? input)?.map((message) => messageOf(message, 'user'));
}

/** The messages of the response, one for each choice. */
export function outputMessagesOf(body: string | null): Message[] | undefined {
  const response = objectIn(body);
  const choices = objectsIn(response?.['choices']);
  if (choices) return choices.map(choiceOf);
  const output = objectsIn(response?.['output']);
  if (!output) return undefined;
  const parts = output.flatMap((item) => messageOf(item, 'assistant').parts);
  return [{ role: 'assistant', parts, finish_reason: response?.['status'] === 'incomplete' ? 'length' : 'stop' }];
}

function choiceOf({ message, text: completed, finish_reason }: JsonObject): Message {
  const reason = typeof finish_reason === 'string' ? finish_reason : 'error';
  const converted = isObject(message)
    ? messageOf(message, 'assistant')
    : { role: 'assistant', parts: partsOf(completed) };
  return { ...converted, finish_reason: reason === 'tool_calls' ? 'tool_call' : reason };
}

/** Converts a message, or an item of the responses API, which may be a tool call or its result. */
function messageOf(message: JsonObject, defaultRole: string): Message {
  const { role, content, tool_calls, type, call_id, output } = message;
  const messageRole = typeof role === 'string' ? role : defaultRole;
  if (type === 'function_call') return { role: 'assistant', parts: [toolCall(call_id, message)] };
  if (type === 'function_call_output') return { role: 'tool', parts: [toolResponse(call_id, output)] };
  if (role === 'tool') return { role, parts: [toolResponse(message['tool_call_id'], content)] };
  if (content === undefined && tool_calls === undefined)
    return { role: messageRole, parts: [{ type: 'unknown', ...message }] };
  const calls = objectsIn(tool_calls) ?? [];
  const called = calls.map(({ id, function: of }) => toolCall(id, isObject(of) ? of : {}));
  return { role: messageRole, parts: [...partsOf(content), ...called] };
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

/** The arguments are JSON in a string, which a model may have written incorrectly. */
function toolCall(id: unknown, { name, arguments: argumentsText }: JsonObject): JsonObject {
  const read = typeof argumentsText === 'string' ? (objectIn(argumentsText) ?? argumentsText) : (argumentsText ?? null);
  return { type: 'tool_call', id, name: typeof name === 'string' ? name : '', arguments: read };
}
