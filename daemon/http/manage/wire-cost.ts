/** The cost of several requests, as all reports of the management API have it. */
import { summedUsd } from '../../api/money.js';
import type { UsageCounts } from '../../core/ports.js';

export const wireCost = ({ costNano, unpriced }: Pick<UsageCounts, 'costNano' | 'unpriced'>) => ({
  cost_usd: summedUsd(costNano, unpriced),
  unpriced_requests: unpriced,
});
