/** OpenAI's SDK, its client for Azure, and Groq's SDK, which has the same methods. */
import { Buffer } from 'node:buffer';
import { messages, parameters } from './calls.mjs';

/** @param name under which the package is installed. */
export async function openai(name, base) {
  const { default: OpenAI, toFile } = await import(name);
  const clientOf = (call) => new OpenAI({ baseURL: `${base}/v1`, ...optionsOf(call) });
  return { ...completions(clientOf), ...otherCalls(clientOf, toFile) };
}

export async function azure(base) {
  const { AzureOpenAI } = await import('openai6');
  const clientOf = (call) => new AzureOpenAI({ endpoint: base, apiVersion: '2024-10-21', ...optionsOf(call) });
  return { ...completions(clientOf), ...otherCalls(clientOf) };
}

/** Its base URL has no version. */
export async function groq(base) {
  const { default: Groq } = await import('groq-sdk');
  const clientOf = (call) => new Groq({ baseURL: base, ...optionsOf(call) });
  return { ...completions(clientOf), ...otherCalls(clientOf) };
}

const optionsOf = ({ id, key, retries = 2 }) => ({
  apiKey: key,
  maxRetries: retries,
  defaultHeaders: { 'X-Scenario': id },
});

const completions = (clientOf) => ({
  async chat(call) {
    const it = await clientOf(call).chat.completions.create({ model: call.model, messages: messages(call) });
    return { content: it.choices[0].message.content, tokens: it.usage.total_tokens };
  },
  async stream(call) {
    const pieces = [];
    const stream = await clientOf(call).chat.completions.create({
      model: call.model,
      messages: messages(call),
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const { choices } of stream) if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
    return { pieces };
  },
  async tool(call) {
    const it = await clientOf(call).chat.completions.create({
      model: call.model,
      messages: messages(call),
      tools: [{ type: 'function', function: { name: 'weather', parameters } }],
    });
    const [made] = it.choices[0].message.tool_calls;
    return { name: made.function.name, arguments: JSON.parse(made.function.arguments) };
  },
});

const otherCalls = (clientOf, toFile) => ({
  async models(call) {
    return { ids: (await clientOf(call).models.list()).data.map(({ id }) => id) };
  },
  async embeddings(call) {
    const it = await clientOf(call).embeddings.create({ model: call.model, input: 'hello' });
    return { values: it.data[0].embedding };
  },
  async upload(call) {
    const file = await toFile(Buffer.alloc(10_000, 'data '), 'data.jsonl');
    const it = await clientOf(call).files.create({ file, purpose: 'assistants' });
    return { id: it.id, filename: it.filename };
  },
});
