/** The `ai` package with one of its providers. */
import { messages, parameters } from './calls.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false; // They go to standard output.

const PROVIDERS = {
  openai: { create: 'createOpenAI', path: '/v1' },
  anthropic: { create: 'createAnthropic', path: '/v1' },
  google: { create: 'createGoogleGenerativeAI', path: '/v1beta' },
};

export async function vercel(name, base) {
  const { [PROVIDERS[name].create]: create } = await import(`@ai-sdk/${name}`);
  const { embed, generateText, jsonSchema, streamText, tool } = await import('ai');
  const providerOf = ({ id, key }) =>
    create({ baseURL: base + PROVIDERS[name].path, apiKey: key, headers: { 'X-Scenario': id } });
  // Chat completions: without `chat`, this SDK uses OpenAI's Responses API.
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
