/** Google's SDK for Gemini. It does not retry, unless it is told to. */
import { parameters, textOf } from './calls.mjs';

export async function google(base) {
  const { GoogleGenAI } = await import('@google/genai');
  const modelsOf = ({ id, key, retries }) => {
    const retryOptions = retries > 0 ? { attempts: retries + 1, initialDelay: 0.01 } : undefined;
    const httpOptions = { baseUrl: base, headers: { 'X-Scenario': id }, ...(retryOptions && { retryOptions }) };
    return new GoogleGenAI({ apiKey: key, httpOptions }).models;
  };
  const request = (call) => ({ model: call.model, contents: textOf(call) });
  return {
    async chat(call) {
      const it = await modelsOf(call).generateContent(request(call));
      return { content: it.text, tokens: it.usageMetadata.totalTokenCount };
    },
    async stream(call) {
      const pieces = [];
      for await (const it of await modelsOf(call).generateContentStream(request(call))) pieces.push(it.text);
      return { pieces };
    },
    async models(call) {
      return { ids: (await modelsOf(call).list()).page.map(({ name }) => name) };
    },
    async embeddings(call) {
      return { values: (await modelsOf(call).embedContent(request(call))).embeddings[0].values };
    },
    async tool(call) {
      const tools = [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: parameters }] }];
      const [made] = (await modelsOf(call).generateContent({ ...request(call), config: { tools } })).functionCalls;
      return { name: made.name, arguments: made.args };
    },
    async count(call) {
      return { tokens: (await modelsOf(call).countTokens(request(call))).totalTokens };
    },
  };
}
