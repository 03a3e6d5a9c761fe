/**
 * The providers of price entries, by the host of a project's upstream. They include the providers with presets, under the same names. The names
 * are the values of `provider` in `PRICES_FILE`.
 */
import type { UpstreamAuth } from '../../api/vocabulary.js';

interface PricedProvider {
  /** Hosts. A name that begins with a dot matches the end of a host. */
  hosts: readonly string[];
  /** Providers whose entries apply where this one has none of its own. */
  also?: readonly string[];
}

const PRICED: Readonly<Record<string, PricedProvider>> = {
  openai: { hosts: ['api.openai.com', '.api.openai.com'] },
  anthropic: { hosts: ['api.anthropic.com'] },
  azure: {
    hosts: ['.openai.azure.com', '.cognitiveservices.azure.com', '.services.ai.azure.com', '.azure-api.net'],
    also: ['openai', 'anthropic', 'deepseek', 'xai', 'moonshot'],
  },
  gemini: { hosts: ['.googleapis.com'], also: ['anthropic'] },
  groq: { hosts: ['api.groq.com'] },
  mistral: { hosts: ['api.mistral.ai'] },
  openrouter: { hosts: ['openrouter.ai', '.openrouter.ai'] },
  deepseek: { hosts: ['api.deepseek.com'] },
  together: { hosts: ['api.together.xyz', 'api.together.ai'] },
  ollama: { hosts: [] },
  xai: { hosts: ['api.x.ai', '.api.x.ai'] },
  cohere: { hosts: ['api.cohere.ai', 'api.cohere.com'] },
  moonshot: { hosts: ['api.moonshot.ai', 'api.moonshot.cn'] },
  perplexity: { hosts: ['api.perplexity.ai'] },
  cerebras: { hosts: ['api.cerebras.ai'] },
  fireworks: { hosts: ['api.fireworks.ai'] },
  zai: { hosts: ['api.z.ai'] },
  zhipu: { hosts: ['open.bigmodel.cn'] },
  minimax: { hosts: ['api.minimax.io', 'api.minimaxi.com'] },
  voyage: { hosts: ['api.voyageai.com'] },
  novita: { hosts: ['api.novita.ai'] },
  baseten: { hosts: ['inference.baseten.co'] },
  avian: { hosts: ['api.avian.io'] },
  bedrock: { hosts: ['.amazonaws.com'] },
  cloudflare: { hosts: ['api.cloudflare.com'] },
  ovhcloud: { hosts: ['oai.endpoints.kepler.ai.cloud.ovh.net'] },
};

export const PRICED_PROVIDERS: readonly string[] = Object.keys(PRICED);

/** The only provider whose reported cost is recorded. Others could report any amount, or another currency. */
export const REPORTS_COST = 'openrouter';

// The port of Ollama.
const OLLAMA_PORT = '11434';

/** @param baseUrl of the upstream. @returns null if the provider is unknown. */
export function pricedProviderOf(baseUrl: string, auth: UpstreamAuth): string | null {
  if (!URL.canParse(baseUrl)) return null;
  const { hostname, port } = new URL(baseUrl);
  for (const [name, { hosts }] of Object.entries(PRICED)) {
    if (hosts.some((host) => (host.startsWith('.') ? hostname.endsWith(host) : hostname === host))) return name;
  }
  if (port === OLLAMA_PORT) return 'ollama';
  return auth === 'api-key' ? 'azure' : null;
}

export const alsoPricedAs = (provider: string): readonly string[] => PRICED[provider]?.also ?? [];
