import type { WireToken } from '../api/contract.js';
import { usdOf } from '../api/money.js';
import type { Spent } from '../core/budget/spending.js';

/** `spent`, as responses of the API have it. */
export const wireSpent = ({ nano, tokens, reserved, unpriced, sinceMs }: Spent): WireToken['spent'] => ({
  usd: usdOf(nano),
  tokens,
  reserved_usd: usdOf(reserved.nano),
  unpriced_requests: unpriced,
  since: new Date(sinceMs).toISOString(),
});
