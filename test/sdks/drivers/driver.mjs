// Makes the calls that it reads from standard input with one SDK of JavaScript, and prints what became of each as a line of JSON.
import { Buffer } from 'node:buffer';
import console from 'node:console';
import process from 'node:process';
import { text } from 'node:stream/consumers';

const { sdk, base, calls } = JSON.parse(await text(process.stdin));

const messages = (call) => [{ role: 'user', content: 'x'.repeat(call.size ?? 5) }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

async function openai(name) {
  const { default: OpenAI, toFile } = await import(name);
  const clientOf = ({ id, key, retries = 2 }) =>
    new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: retries, defaultHeaders: { 'X-Scenario': id } });
  return {
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
      });
      for await (const { choices } of stream) if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
      return { pieces };
    },
    async models(call) {
      return { ids: (await clientOf(call).models.list()).data.map(({ id }) => id) };
    },
    async embeddings(call) {
      const it = await clientOf(call).embeddings.create({ model: call.model, input: 'hello' });
      return { values: it.data[0].embedding };
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
    async upload(call) {
      const file = await toFile(Buffer.alloc(10_000, 'data '), 'data.jsonl');
      const it = await clientOf(call).files.create({ file, purpose: 'assistants' });
      return { id: it.id, filename: it.filename };
    },
  };
}

async function vercel() {
  const { createOpenAI } = await import('@ai-sdk/openai');
  const { embed, generateText, jsonSchema, streamText, tool } = await import('ai');
  const providerOf = ({ id, key }) =>
    createOpenAI({ baseURL: `${base}/v1`, apiKey: key, headers: { 'X-Scenario': id } });
  const options = (call) => ({
    model: providerOf(call).chat(call.model),
    messages: messages(call),
    maxRetries: call.retries ?? 2,
  });
  return {
    async chat(call) {
      const it = await generateText(options(call));
      return { content: it.text, tokens: it.usage.totalTokens };
    },
    async stream(call) {
      const pieces = [];
      for await (const part of streamText({ ...options(call), onError: () => undefined }).fullStream) {
        if (part.type === 'error') throw part.error;
        if (part.type === 'text-delta') pieces.push(part.text);
      }
      return { pieces };
    },
    async embeddings(call) {
      const model = providerOf(call).embedding(call.model);
      return { values: (await embed({ model, value: 'hello', maxRetries: call.retries ?? 2 })).embedding };
    },
    async tool(call) {
      const tools = { weather: tool({ inputSchema: jsonSchema(parameters) }) };
      const [made] = (await generateText({ ...options(call), tools })).toolCalls;
      return { name: made.toolName, arguments: made.input };
    },
  };
}

/** Some wrap what they were told, after they have tried again. */
function describe(error) {
  const it = error.lastError ?? error;
  const said = it.data?.error ?? it;
  return {
    class: it.constructor?.name === 'Object' ? 'object' : (it.constructor?.name ?? typeof it),
    status: it.status ?? it.statusCode ?? null,
    code: said.code ?? null,
    type: said.type ?? null,
    message: String(it.message),
  };
}

const made = await (sdk === 'ai' ? vercel() : openai(sdk));
for (const call of calls) {
  let became;
  try {
    became = { ok: await made[call.kind](call) };
  } catch (error) {
    became = { error: describe(error) };
  }
  console.log(JSON.stringify({ id: call.id, ...became }));
}
