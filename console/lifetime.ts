/** Parses the lifetime of a token. */
import type { Kind } from '../config/kinds.js';
import type { TokenCreate } from '../daemon/api/contract.js';
import { MAX_DURATION_HOURS } from '../daemon/api/vocabulary.js';

/** The lifetime as a field of the API: exactly one of the two. */
export type Lifetime = Pick<TokenCreate, 'duration_hours' | 'duration_minutes'>;

// 30 days. Withering tokens are meant to be short-lived.
export const LONGEST_RECOMMENDED_HOURS = 720;

export const lifetime: Kind<Lifetime> = {
  accepts: `hours from 1 to ${MAX_DURATION_HOURS} such as 48, or a time with a unit such as 90m, 48h or 7d`,
  parse(given) {
    const [, digits, unit] = /^(\d{1,6})([mhd]?)$/.exec(given) ?? [];
    const amount = Number(digits) * (unit === 'd' ? 24 : 1);
    if (!digits || amount < 1 || amount > MAX_DURATION_HOURS * (unit === 'm' ? 60 : 1)) return undefined;
    return unit === 'm' ? { duration_minutes: amount } : { duration_hours: amount };
  },
};

/** @returns hours; 0 when no lifetime was given. */
export const hoursOf = (given: Lifetime | undefined): number =>
  given?.duration_hours ?? (given?.duration_minutes ?? 0) / 60;
