/** Anthropic's SDK. */
import { messages, parameters } from './calls.mjs';

/** @param name under which the package is installed. */
export async function anthropic(name, base) {
  const { default: Anthropic } = await import(name);
  const clientOf = ({ id, key, retries = 2 }) =>
    new Anthropic({ baseURL: base, apiKey: key, maxRetries: retries, defaultHeaders: { 'X-Scenario': id } });
  const request = (call) => ({ model: call.model, max_tokens: 10, messages: messages(call) });
  return {
    async chat(call) {
      const it = await clientOf(call).messages.create(request(call));
      return { content: it.content[0].text, tokens: it.usage.output_tokens };
    },
    async stream(call) {
      const pieces = [];
      const stream = clientOf(call).messages.stream(request(call));
      for await (const { type, delta } of stream) if (type === 'content_block_delta') pieces.push(delta.text);
      return { pieces };
    },
    async models(call) {
      return { ids: (await clientOf(call).models.list()).data.map(({ id }) => id) };
    },
    async tool(call) {
      const tools = [{ name: 'weather', input_schema: parameters }];
      const [made] = (await clientOf(call).messages.create({ ...request(call), tools })).content;
      return { name: made.name, arguments: made.input };
    },
    async count(call) {
      const { model, messages: counted } = request(call);
      return { tokens: (await clientOf(call).messages.countTokens({ model, messages: counted })).input_tokens };
    },
  };
}
