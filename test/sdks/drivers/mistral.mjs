/** Mistral's SDK. It does not retry, unless it is told to. */
import { messages, parameters } from './calls.mjs';

export async function mistral(base) {
  const { HTTPClient, Mistral } = await import('@mistralai/mistralai');
  const clientOf = ({ id, key, retries }) => {
    const httpClient = new HTTPClient();
    httpClient.addHook('beforeRequest', (request) => {
      request.headers.set('X-Scenario', id);
    });
    // It limits the time of all attempts, not their number. Where the requests are counted, it makes one.
    const backoff = { initialInterval: 1_000, maxInterval: 1_000, exponent: 1, maxElapsedTime: 3_000 };
    return new Mistral({
      serverURL: base,
      apiKey: key,
      httpClient,
      ...(retries > 1 && { retryConfig: { strategy: 'backoff', backoff } }),
    });
  };
  const request = (call) => ({ model: call.model, messages: messages(call) });
  return {
    async chat(call) {
      const it = await clientOf(call).chat.complete(request(call));
      return { content: it.choices[0].message.content, tokens: it.usage.totalTokens };
    },
    async stream(call) {
      const pieces = [];
      for await (const { data } of await clientOf(call).chat.stream(request(call))) {
        if (data.choices[0]?.delta.content) pieces.push(data.choices[0].delta.content);
      }
      return { pieces };
    },
    async models(call) {
      return { ids: (await clientOf(call).models.list()).data.map(({ id }) => id) };
    },
    async embeddings(call) {
      return {
        values: (await clientOf(call).embeddings.create({ model: call.model, inputs: 'hello' })).data[0].embedding,
      };
    },
    async tool(call) {
      const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
      const it = await clientOf(call).chat.complete({ ...request(call), tools });
      const [made] = it.choices[0].message.toolCalls;
      return { name: made.function.name, arguments: JSON.parse(made.function.arguments) };
    },
  };
}
