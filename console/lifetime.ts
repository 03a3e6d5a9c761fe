/** Parses the lifetime of a token. */
import type { Kind } from '../config/kinds.js';
import type { TokenCreate } from '../daemon/api/contract.js';
import { MAX_DURATION_HOURS, MS_PER_UNIT } from '../daemon/api/vocabulary.js';
import { span } from './span.js';

/** The lifetime as a field of the API: exactly one of the two. */
export type Lifetime = Pick<TokenCreate, 'duration_hours' | 'duration_minutes'>;

// 30 days. Withering tokens are meant to be short-lived.
export const LONGEST_RECOMMENDED_HOURS = 720;

export const lifetime: Kind<Lifetime> = {
  accepts: `hours from 1 to ${MAX_DURATION_HOURS} such as 48, or a time with a unit such as 90m, 48h, 7d or 2w`,
  parse(given) {
    const minutes = (span.parse(/^\d+$/.test(given) ? `${given}h` : given) ?? 0) / MS_PER_UNIT.m;
    if (!Number.isInteger(minutes) || minutes < 1 || minutes > MAX_DURATION_HOURS * 60) return undefined;
    return minutes % 60 === 0 ? { duration_hours: minutes / 60 } : { duration_minutes: minutes };
  },
};

/** @returns hours; 0 when no lifetime was given. */
export const hoursOf = (given: Lifetime | undefined): number =>
  given?.duration_hours ?? (given?.duration_minutes ?? 0) / 60;
