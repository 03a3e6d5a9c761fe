/** How single facts are written: states, times, numbers, names. */
import type { WireToken, WireTokenState } from '../../api/contract.js';
import { useFrame } from './frame.js';

const NUMBER = new Intl.NumberFormat('en');
export const number = (value: number): string => NUMBER.format(value);

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;

/** What turns the direction of writing is spelt out: a name must not rearrange what stands beside it. */
export const plain = (text: string): string =>
  text.replace(/\p{Bidi_Control}/gu, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const Name = ({ children }: { children: string }) => <bdi>{plain(children)}</bdi>;

export const shortId = (id: string): string => id.slice(0, 8);

interface MarkProps {
  look: string;
  glyph: string;
  word: string;
}

// State is never colour alone, and never the glyph alone.
const Mark = ({ look, glyph, word }: MarkProps) => (
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

export const StateMark = ({ state }: { state: WireTokenState }) => <Mark look={state} {...STATES[state]} />;

export const ProjectMark = ({ isActive }: { isActive: boolean }) =>
  isActive ? (
    <Mark look="active" glyph="●" word="active" />
  ) : (
    <Mark look="project_inactive" glyph="◌" word="inactive" />
  );

const OUTCOMES: Readonly<Record<string, Omit<MarkProps, 'word'>>> = {
  success: { look: 'active', glyph: '✓' },
  denied: { look: 'rate_limited', glyph: '▲' },
  error: { look: 'revoked', glyph: '✗' },
};

export const OutcomeMark = ({ outcome }: { outcome: string }) => (
  <Mark {...(OUTCOMES[outcome] ?? { look: 'expired', glyph: '·' })} word={outcome} />
);

const PARTS = {
  ok: { look: 'active', glyph: '●' },
  failing: { look: 'revoked', glyph: '✗' },
  off: { look: 'expired', glyph: '○' },
} as const;

/** Of something that the daemon depends on. */
export const PartMark = ({ status }: { status: keyof typeof PARTS }) => <Mark {...PARTS[status]} word={status} />;

// Each is used from some way beyond one of it, so that 90 minutes and 48 hours read like that.
const UNITS = [
  { name: 'd', ms: 86_400_000, fromMs: 3 * 86_400_000 },
  { name: 'h', ms: 3_600_000, fromMs: 2 * 3_600_000 },
  { name: 'min', ms: 60_000, fromMs: 2 * 60_000 },
] as const;
const SECOND = { name: 's', ms: 1000 } as const;

export function span(ms: number): string {
  const { name, ms: unit } = UNITS.find(({ fromMs }) => ms >= fromMs) ?? SECOND;
  return `${number(Math.round(ms / unit))} ${name}`;
}

/** `2030-01-31 12:00:00 UTC` */
export const utc = (timestamp: string): string => `${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)} UTC`;

/** How far away it is; the moment itself for who points at it, or beside it. */
export function Time({ at, isFull = false }: { at: string | null; isFull?: boolean }) {
  const { nowMs } = useFrame();
  if (at === null) return <span className="faint">never</span>;
  const distance = Date.parse(at) - nowMs;
  const relative = distance > 0 ? `in ${span(distance)}` : `${span(-distance)} ago`;
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

const SIZES = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** In powers of 1000, as the settings have them. */
export function size(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${number(Math.round((bytes / 1000 ** power) * 10) / 10)} ${SIZES[power] ?? ''}`;
}
