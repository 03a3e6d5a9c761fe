/** The handlers of prices. */
import type { Operations } from '../../api/operations.js';
import { usdOf } from '../../api/money.js';
import type { WirePrice } from '../../api/contract.js';
import { explain, mostFor } from '../../core/cost/costing.js';
import type { Costs } from '../../core/cost/costs.js';
import { pricedProviderOf } from '../../core/cost/priced-providers.js';
import type { Clock, RecordStore, Scope } from '../../core/ports.js';
import { orUnavailable, projectNotFound } from '../../core/refusal.js';
import type { Registry } from '../../core/registry.js';
import { DAY_MS, HOUR_MS, type UsageStatistics } from '../../core/usage.js';
import type { Handlers } from './endpoints.js';
import { idOf } from './ids.js';
import { wireCostLine, wirePrice, wirePriceLists } from './wire-prices.js';

export interface PriceOptions {
  registry: Registry;
  costs: Costs;
  usage: Pick<UsageStatistics, 'report'>;
  names: RecordStore['names'];
  clock: Clock;
}

const SEEN_WITHIN_MS = 30 * DAY_MS;
/** The most models that the check lists. */
const MAX_MISSING = 200;
const DEFAULT_TOKENS = 1_000;

export function priceHandlers({
  registry,
  costs,
  usage,
  names,
  clock,
}: PriceOptions): Handlers<Pick<Operations, 'listPrices' | 'checkPrices' | 'explainPrice'>> {
  async function providerOf(projectId: string, scope: Scope): Promise<string | null> {
    const project = await registry.projectBefore(projectId, scope);
    if (!project) throw projectNotFound();
    const { upstreamBaseUrl, upstreamAuth } = project;
    const pricedProvider = upstreamBaseUrl === null ? null : pricedProviderOf(upstreamBaseUrl, upstreamAuth);
    return costs.providerOf({ upstreamBaseUrl, upstreamAuth, pricedProvider });
  }

  return {
    // eslint-disable-next-line @typescript-eslint/require-await -- A handler returns a promise.
    listPrices: async ({ query }) => {
      const wanted = query.model?.toLowerCase();
      const shown: WirePrice[] = [];
      let count = 0;
      for (const price of costs.prices.entries()) {
        if (wanted !== undefined && !price.model.includes(wanted)) continue;
        if (query.provider !== undefined && price.provider !== query.provider) continue;
        count += 1;
        if (count <= query.limit) shown.push(wirePrice(price));
      }
      return { lists: wirePriceLists(costs.lists), price_count: count, prices: shown };
    },

    checkPrices: async ({ scope }) => {
      const nowMs = clock.now();
      const sinceMs = Math.max(0, Math.floor((nowMs - SEEN_WITHIN_MS) / HOUR_MS) * HOUR_MS);
      const untilMs = Math.ceil(nowMs / HOUR_MS) * HOUR_MS;
      const lines = await usage.report({ by: new Set(['project', 'model'] as const), sinceMs, untilMs }, scope);
      const unpriced = lines.filter((line) => line.unpriced > 0).sort((one, other) => other.unpriced - one.unpriced);
      const providers = new Map<string, string | null>();
      const missing = [];
      for (const line of unpriced) {
        const [model, projectId] = [line.model || null, line.projectId || null];
        if (missing.length === MAX_MISSING) break;
        if (projectId !== null && !providers.has(projectId))
          providers.set(projectId, await providerOf(projectId, scope));
        const provider = projectId === null ? null : (providers.get(projectId) ?? null);
        if (model !== null && costs.prices.priceOf(model, provider, nowMs)) continue;
        missing.push({ model, projectId, provider, requests: line.unpriced });
      }
      const named = await orUnavailable(names([], new Set(missing.flatMap(({ projectId }) => projectId ?? []))));
      return {
        since: new Date(sinceMs).toISOString(),
        models: missing.map(({ model, projectId, provider, requests }) => ({
          model,
          project_id: projectId,
          project_name: projectId === null ? null : (named.projects.get(projectId) ?? null),
          provider,
          unpriced_requests: requests,
        })),
      };
    },

    explainPrice: async ({ query, scope }) => {
      const { model, project_id: projectId } = query;
      const provider =
        projectId === undefined
          ? (query.provider ?? null)
          : await providerOf(idOf({ id: projectId }, 'project'), scope);
      const price = costs.prices.priceOf(model, provider, clock.now());
      const { prompt_tokens: promptTokens = DEFAULT_TOKENS, completion_tokens: completionTokens = DEFAULT_TOKENS } =
        query;
      const cost =
        price &&
        explain(price, {
          promptTokens,
          completionTokens,
          totalTokens: promptTokens + completionTokens,
          cacheReadTokens: query.cache_read_tokens ?? null,
          cacheWriteTokens: query.cache_write_tokens ?? null,
          cacheWrite1hTokens: query.cache_write_1h_tokens ?? null,
          reasoningTokens: query.reasoning_tokens ?? null,
          audioInputTokens: query.audio_input_tokens ?? null,
          audioOutputTokens: query.audio_output_tokens ?? null,
          reportedNano: null,
        });
      return {
        model,
        provider,
        price: price && wirePrice(price),
        above_input_tokens: cost?.aboveInputTokens ?? null,
        lines: (cost?.lines ?? []).map(wireCostLine),
        cost_usd: cost ? usdOf(cost.nano) : null,
        at_most_usd: price ? usdOf(mostFor(price, promptTokens, completionTokens)) : null,
      };
    },
  };
}
