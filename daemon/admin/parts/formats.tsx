/** Formatting of single values: states, times, numbers, names, links. */
import { shortId, stateMark } from '../../../console/columns/cell-text.js';
import { atLimitShown, budgetParts, budgetShown, partShown, type Spender } from '../../../console/columns/policies.js';
import { counted, exact, relativeTime } from '../../api/formats.js';
import { type Cost, costShown } from '../../api/money.js';
import { Link, useFrame } from './frame.js';
import type { Named } from '../../../console/columns/column.js';

/** Escapes bidirectional control characters, so that a name cannot reorder the text next to it. */
export const escapeBidi = (text: string): string =>
  text.replace(/\p{Bidi_Control}/gu, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const Name = ({ children }: { children: string }) => <bdi>{escapeBidi(children)}</bdi>;

interface MarkProps {
  look: string;
  glyph: string;
  word: string;
}

// For accessibility, a state is never shown by its colour or glyph alone.
export const StatusMark = ({ look, glyph, word }: MarkProps) => (
  <span className={`mark ${look}`}>
    <span aria-hidden="true">{glyph}</span> {word}
  </span>
);

export function StateMark({ state }: { state: string }) {
  const { glyph, word } = stateMark(state) ?? { glyph: '·', word: state };
  return <StatusMark look={state} glyph={glyph} word={word} />;
}

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

export const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text));

/** `2030-01-31 12:00:00 UTC`. Text that is not a timestamp is returned unchanged. */
export const utc = (timestamp: string): string =>
  isTime(timestamp) ? `${timestamp.slice(0, 10)} ${timestamp.slice(11, 19)} UTC` : timestamp;

/** A relative time, with the absolute time as a tooltip, or next to it if `isFull`. */
export function Time({ at, isFull = false }: { at: string | null; isFull?: boolean }) {
  const { nowMs } = useFrame();
  if (at === null) return <span className="faint">never</span>;
  if (!isTime(at)) return <>{at}</>;
  const relative = relativeTime(at, nowMs);
  return (
    <time dateTime={at} title={utc(at)}>
      {isFull ? `${utc(at)} (${relative})` : relative}
    </time>
  );
}

export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** @param ms null if nothing was measured. */
export const milliseconds = (ms: number | null): string => (ms === null ? '–' : `${exact(Math.round(ms))} ms`);

/** @param share null if there is none. */
export const percent = (share: number | null): string => (share === null ? '–' : `${exact(Math.round(share * 100))} %`);

/** A number in a table. Zeros are faint, and left out on narrow screens. */
export const Figure = ({ value }: { value: number }) =>
  value === 0 ? <span className="zero">0</span> : <>{exact(value)}</>;

/** What requests cost. */
export const Money = ({ cost }: { cost: Cost }) => {
  const { cost_usd: usd, unpriced_requests: unpriced } = cost;
  const title = [usd !== null && `$${usd}`, unpriced > 0 && `cost of ${counted(unpriced, 'request')} unknown`];
  return (
    <span className={usd === '0.00' && unpriced === 0 ? 'zero' : undefined} title={title.filter(Boolean).join(', ')}>
      {costShown(cost)}
    </span>
  );
};

/** A number of failed requests in a table. */
export const Errors = ({ count }: { count: number }) =>
  count > 0 ? <span className="mark revoked">{exact(count)}</span> : <Figure value={count} />;

/** How much of a token's cap is used. @param props.cap 0: none. */
export function Cap({ used, cap }: { used: number; cap: number }) {
  if (cap === 0) return <>{exact(used)}</>;
  const share = used / cap;
  return (
    <span className="uses">
      {exact(used)} / {exact(cap)} <Meter share={share} label={`${Math.floor(share * 100)} % used`} />
    </span>
  );
}

/** The budget, a meter of what is spent for each of its units, and what happens at the limit. */
export function BudgetUse({ spender }: { spender: Spender }) {
  const { budget } = spender;
  if (budget === null) return <>none</>;
  return (
    <>
      <span className="line">{`${capitalized(budgetShown(budget))}.`}</span>
      {budgetParts(spender).map((part) => (
        <span className="line" key={part.limit}>
          {partShown(part, budget)} <Meter share={part.share} label={`${Math.floor(part.share * 100)} % spent`} />
        </span>
      ))}
      <span className="line faint">{`At the limit, ${atLimitShown(budget)}.`}</span>
    </>
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

// ---- links to projects and tokens

export const NameOrId = ({ id, name }: Named) => (name ? <Name>{name}</Name> : <code>{shortId(id)}</code>);

/** The ID is in the tooltip. */
export function TokenLink({ token: { id, name } }: { token: Named }) {
  return (
    <Link to={`tokens/${id}`} title={id}>
      <NameOrId id={id} name={name} />
    </Link>
  );
}

export function ProjectLink({ project: { id, name } }: { project: Named }) {
  return (
    <Link to={`projects/${id}`} title={id}>
      <NameOrId id={id} name={name} />
    </Link>
  );
}
