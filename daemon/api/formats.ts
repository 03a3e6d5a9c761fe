/** Formats of values for people: the same in the command line, the terminal UI, the Admin UI and the doctor. */
import { doerOf } from './vocabulary.js';

let grouping: Intl.NumberFormat | undefined;

/** `4,211` */
export function exact(value: number): string {
  // Not created at load time, because most commands print no number.
  grouping ??= new Intl.NumberFormat('en');
  return grouping.format(value);
}

/** A number with its noun: `1 token`, `1,000 tokens`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${exact(count)} ${count === 1 ? one : many}`;

/** Of what happens per second: `6.8`, `1,204`. */
export const rate = (perSecond: number): string =>
  perSecond >= 0.05 && perSecond < 10 ? perSecond.toFixed(1) : exact(Math.round(perSecond));

/** Three significant digits. */
export const short = (value: number): string =>
  value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);

/** Who did something: `ana@laptop (cli)`, `operator:ana (ana@laptop)`, or the actor alone. What is verified comes first. */
export function actorShown({ actor, user }: { actor: string; user: string | null }): string {
  if (user === null) return actor;
  const doer = doerOf({ actor, user });
  return `${doer} (${doer === actor ? user : actor})`;
}

/** `2h ago by ana@laptop: leaked`; undefined for a token that is not revoked. */
export function revocationShown(
  token: { revoked_at: string | null; revoked_by: string | null; revoke_reason: string | null },
  nowMs: number,
): string | undefined {
  const { revoked_at: at, revoked_by: by, revoke_reason: reason } = token;
  if (at === null) return undefined;
  return `${relativeTime(at, nowMs)}${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`;
}

const BYTE_UNITS = ['kB', 'MB', 'GB', 'TB'] as const;

/** Prompt tokens of the provider's prompt cache, such as `1,200 read, 300 written`; null if there are none. */
export function promptCacheShown(usage: {
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
}): string | null {
  const [read, written] = [usage.cache_read_tokens ?? 0, usage.cache_write_tokens ?? 0];
  const shown = [read > 0 && `${exact(read)} read`, written > 0 && `${exact(written)} written`].filter(Boolean);
  return shown.length === 0 ? null : shown.join(', ');
}

/** `950 B`, `1.25 MB`: powers of 1000, as sizes in the settings. */
export function bytes(value: number): string {
  let [amount, power] = [value, 0];
  for (; amount >= 999.5 && power < BYTE_UNITS.length; power += 1) amount /= 1000;
  return power === 0 ? `${value} B` : `${short(amount)} ${BYTE_UNITS[power - 1] ?? ''}`;
}

// Each unit is used only from two or three of it on, so that 90 minutes and 48 hours are shown as 90m and 48h.
const UNITS = [
  { name: 'd', ms: 86_400_000, fromMs: 3 * 86_400_000 },
  { name: 'h', ms: 3_600_000, fromMs: 2 * 3_600_000 },
  { name: 'm', ms: 60_000, fromMs: 2 * 60_000 },
] as const;
const SECOND = { name: 's', ms: 1000 } as const;

/** A duration: `38s`, `12m`, `3h`, `4d`. A negative one is zero. */
export function duration(ms: number): string {
  const { name, ms: unit } = UNITS.find(({ fromMs }) => ms >= fromMs) ?? SECOND;
  return `${Math.max(0, Math.round(ms / unit))}${name}`;
}

/**
 * `in 12m`, `3h ago`, `now`, or `never` for null. Text that is not a timestamp is returned unchanged.
 *
 * @param nowMs since the epoch, by the daemon's clock if it is known.
 */
export function relativeTime(timestamp: string | null, nowMs: number): string {
  if (timestamp === null) return 'never';
  const distanceMs = Date.parse(timestamp) - nowMs;
  if (Number.isNaN(distanceMs)) return timestamp;
  // The clocks of two machines may differ slightly: a recent event must not appear to be in the future.
  if (Math.abs(distanceMs) < SECOND.ms) return 'now';
  return distanceMs > 0 ? `in ${duration(distanceMs)}` : `${duration(-distanceMs)} ago`;
}
