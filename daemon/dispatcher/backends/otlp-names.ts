/**
 * Names from the OpenTelemetry conventions. The GenAI names are those of release 1.41, the last one that has them. The package with the constants
 * marks them as unstable and recommends copying them. A test compares the copies with the package.
 */
export const ATTRIBUTES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  tokenType: 'gen_ai.token.type',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  errorType: 'error.type',
  method: 'http.request.method',
  status: 'http.response.status_code',
  path: 'url.path',
  service: 'service.name',
  instance: 'service.instance.id',
} as const;

/** Metrics with the units and bucket boundaries of the conventions. */
export const METRICS = {
  tokenUsage: {
    name: 'gen_ai.client.token.usage',
    unit: '{token}',
    description: 'Number of input and output tokens used.',
    boundaries: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  },
  duration: {
    name: 'gen_ai.client.operation.duration',
    unit: 's',
    description: 'GenAI operation duration.',
    boundaries: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  },
} as const;

/** Attributes of llmp, for which the conventions have no names. */
export const OWN_ATTRIBUTES = {
  project: 'llmp.project.id',
  token: 'llmp.token.id',
  request: 'llmp.request.id',
  upstreamRequest: 'llmp.upstream.request.id',
  outcome: 'llmp.outcome',
  cache: 'llmp.cache',
  /** US dollars. */
  cost: 'llmp.cost.usd',
} as const;
