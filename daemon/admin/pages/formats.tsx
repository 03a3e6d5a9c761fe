/** Formatting of single values: states, times, numbers, names. */
import type { WireToken, WireTokenState } from '../../api/contract.js';
import { useFrame } from './frame.js';

const NUMBER = new Intl.NumberFormat('en');
export const number = (value: number): string => NUMBER.format(value);

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;

/** Escapes bidirectional control characters, so that a name cannot reorder the text next to it. */
export const escapeBidi = (text: string): string =>
  text.replace(/\p{Bidi_Control}/gu, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const Name = ({ children }: { children: string }) => <bdi>{escapeBidi(children)}</bdi>;

export const shortId = (id: string): string => id.slice(0, 8);

interface MarkProps {
  look: string;
  glyph: string;
  word: string;
}

// For accessibility, a state is never shown by its colour or glyph alone.
const StatusMark = ({ look, glyph, word }: MarkProps) => (
  <span className={`mark ${look}`}>
    <span aria-hidden="true">{glyph}</span> {word}
  </span>
);

const STATES: Record<WireTokenState, { glyph: string; word: string }> = {
  active: { glyph: '●', word: 'active' },
  expired: { glyph: '○', word: 'expired' },
  revoked: { glyph: '✗', word: 'revoked' },
  rate_limited: { glyph: '▲', word: 'limited' },
  project_inactive: { glyph: '◌', word: 'project off' },
};

export const stateWord = (state: WireTokenState): string => STATES[state].word;

export const StateMark = ({ state }: { state: WireTokenState }) => <StatusMark look={state} {...STATES[state]} />;

export const ProjectMark = ({ isActive }: { isActive: boolean }) =>
  isActive ? (
    <StatusMark look="active" glyph="●" word="active" />
  ) : (
    <StatusMark look="project_inactive" glyph="◌" word="inactive" />
  );

const OUTCOMES: Readonly<Record<string, Omit<MarkProps, 'word'>>> = {
  success: { look: 'active', glyph: '✓' },
  denied: { look: 'rate_limited', glyph: '▲' },
  error: { look: 'revoked', glyph: '✗' },
};

export const OutcomeMark = ({ outcome }: { outcome: string }) => (
  <StatusMark {...(OUTCOMES[outcome] ?? { look: 'expired', glyph: '·' })} word={outcome} />
);

const COMPONENTS = {
  ok: { look: 'active', glyph: '●' },
  failing: { look: 'revoked', glyph: '✗' },
  off: { look: 'expired', glyph: '○' },
} as const;

/** State of a component that the daemon depends on. */
export const ComponentMark = ({ status }: { status: keyof typeof COMPONENTS }) => (
  <StatusMark {...COMPONENTS[status]} word={status} />
);

// Each unit is used only from 2 or 3 of it, so that 90 minutes and 48 hours are shown as such.
const UNITS = [
  { name: 'd', ms: 86_400_000, fromMs: 3 * 86_400_000 },
  { name: 'h', ms: 3_600_000, fromMs: 2 * 3_600_000 },
  { name: 'min', ms: 60_000, fromMs: 2 * 60_000 },
] as const;
const SECOND = { name: 's', ms: 1000 } as const;

export function duration(ms: number): string {
  const { name, ms: unit } = UNITS.find(({ fromMs }) => ms >= fromMs) ?? SECOND;
  return `${number(Math.round(ms / unit))} ${name}`;
}

/** `2030-01-31 12:00:00 UTC` */
export const utc = (timestamp: string): string => `${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)} UTC`;

/** A relative time, with the absolute time as a tooltip, or next to it if `isFull`. */
export function Time({ at, isFull = false }: { at: string | null; isFull?: boolean }) {
  const { nowMs } = useFrame();
  if (at === null) return <span className="faint">never</span>;
  const distance = Date.parse(at) - nowMs;
  const relative = distance > 0 ? `in ${duration(distance)}` : `${duration(-distance)} ago`;
  return (
    <time dateTime={at} title={utc(at)}>
      {isFull ? `${utc(at)} (${relative})` : relative}
    </time>
  );
}

/** How much of a token's cap is used. */
export function Uses({ token: { request_count: used, max_requests: most } }: { token: WireToken }) {
  if (most === 0) return <>{number(used)}</>;
  const share = used / most;
  return (
    <span className="uses">
      {number(used)} / {number(most)} <Meter share={share} label={`${Math.floor(share * 100)} % used`} />
    </span>
  );
}

function Meter({ share, label }: { share: number; label: string }) {
  const look = share >= 1 ? 'full' : share >= 0.9 ? 'high' : 'low';
  return (
    <svg className={`meter ${look}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect className="whole" width="100" height="6" />
      <rect className="part" width={Math.round(Math.min(1, share) * 1000) / 10} height="6" />
    </svg>
  );
}

const SIZE_UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** In powers of 1000, as in the settings. */
export function size(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(SIZE_UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${number(Math.round((bytes / 1000 ** power) * 10) / 10)} ${SIZE_UNITS[power] ?? ''}`;
}
