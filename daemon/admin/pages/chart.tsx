import { exact } from '../../api/formats.js';
import type { WireUsageLine } from '../../api/contract.js';
import { Link, useFrame } from './frame.js';

const HOUR_MS = 3_600_000;

/** The periods that a chart can show, with their resolution. */
export const SPANS = {
  '24h': { title: '24 hours', by: 'hour', stepMs: HOUR_MS, steps: 24 },
  '7d': { title: '7 days', by: 'hour', stepMs: HOUR_MS, steps: 7 * 24 },
  '30d': { title: '30 days', by: 'day', stepMs: 24 * HOUR_MS, steps: 30 },
} as const;

export type SpanName = keyof typeof SPANS;

export const spanNamed = (name: string | null): SpanName =>
  name !== null && Object.hasOwn(SPANS, name) ? (name as SpanName) : '24h';

/** Start of the first hour or day of the period. */
export function startOf(span: SpanName, nowMs: number): number {
  const { stepMs, steps } = SPANS[span];
  return Math.floor(nowMs / stepMs) * stepMs - (steps - 1) * stepMs;
}

interface TimeBucket {
  atMs: number;
  requests: number;
  errors: number;
}

/** One entry for each hour or day of the period, including those without requests. */
function bucketsOf(lines: readonly WireUsageLine[], span: SpanName, nowMs: number): TimeBucket[] {
  const { by, stepMs, steps } = SPANS[span];
  const found = new Map(lines.map((line) => [Date.parse(line[by] ?? ''), line]));
  const first = startOf(span, nowMs);
  return Array.from({ length: steps }, (_, index) => {
    const atMs = first + index * stepMs;
    const line = found.get(atMs);
    return { atMs, requests: line?.requests ?? 0, errors: line?.errors ?? 0 };
  });
}

export interface UsageProps {
  lines: readonly WireUsageLine[];
  spanName: SpanName;
  /** The page that contains the charts, for the links to other periods. */
  to: string;
}

/** Requests and errors over time. */
export function Usage({ lines, spanName, to }: UsageProps) {
  const steps = bucketsOf(lines, spanName, useFrame().nowMs);
  const total = (count: 'refused' | 'upstream_refused' | 'upstream_errors' | 'cut') =>
    exact(lines.reduce((sum, line) => sum + line[count], 0));
  return (
    <section aria-labelledby="usage-title" id="usage" data-live="">
      <div className="section-head">
        <h2 id="usage-title">Traffic</h2>
        <ul className="choice" aria-label="Time shown">
          {(Object.keys(SPANS) as SpanName[]).map((name) => (
            <li key={name}>
              <Link to={`${to}?span=${name}`} aria-current={name === spanName ? 'true' : undefined}>
                {SPANS[name].title}
              </Link>
            </li>
          ))}
        </ul>
      </div>
      <div className="charts">
        <Chart title="Requests" span={spanName} steps={steps} valueOf={({ requests }) => requests} />
        <Chart title="Errors" span={spanName} steps={steps} valueOf={({ errors }) => errors} />
      </div>
      <p className="most">
        {`Refused by llmp: ${total('refused')}. Refused by the provider: ${total('upstream_refused')}. Provider errors: ${total('upstream_errors')}. Ended by a revocation: ${total('cut')}.`}
      </p>
    </section>
  );
}

interface ChartProps {
  title: 'Requests' | 'Errors';
  span: SpanName;
  steps: readonly TimeBucket[];
  valueOf: (step: TimeBucket) => number;
}

// Size of the drawing, which is stretched to the available space.
const HEIGHT = 96;
const WIDTH = 720;

function Chart({ title, span, steps, valueOf }: ChartProps) {
  const values = steps.map(valueOf);
  const total = values.reduce((sum, value) => sum + value, 0);
  const most = Math.max(...values);
  const top = scaleTop(most);
  const { by, title: time } = SPANS[span];
  const summary =
    total === 0
      ? `${title}: none in the last ${time}`
      : `${title}: ${exact(total)} in the last ${time}, up to ${exact(most)} per ${by}`;
  const timeOf = (index: number) => moment(steps[index]?.atMs ?? 0, span);
  return (
    <figure className={`chart ${title.toLowerCase()}`}>
      <figcaption>
        {title} <strong>{exact(total)}</strong>
        <span className="most">{total === 0 ? '' : `up to ${exact(most)} per ${by}`}</span>
      </figcaption>
      <p className="scale" aria-hidden="true">
        {[top, top / 2, 0].map((value) => (
          <span key={value}>{exact(value)}</span>
        ))}
      </p>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {[0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => (
          <line key={y} className="base" x1="0" x2={WIDTH} y1={y} y2={y} />
        ))}
        <Bars steps={steps} values={values} top={top} span={span} />
      </svg>
      <p className="axis" aria-hidden="true">
        <span>{timeOf(0)}</span>
        <span>{timeOf(Math.floor(steps.length / 2))}</span>
        <span>{`${timeOf(steps.length - 1)} UTC`}</span>
      </p>
    </figure>
  );
}

interface BarsProps extends Pick<ChartProps, 'steps' | 'span'> {
  values: readonly number[];
  /** Value of a bar of full height. */
  top: number;
}

/** End of the scale: 2, 4, 6, 8 or 10 times a power of ten, so that half of it is a whole number. */
function scaleTop(most: number): number {
  const power = 10 ** Math.max(0, Math.ceil(Math.log10(Math.max(1, most))) - 1);
  return Math.max(2, Math.ceil(most / power / 2) * 2 * power);
}

function Bars({ steps, values, top, span }: BarsProps) {
  const pitch = WIDTH / steps.length;
  const gap = Math.min(3, pitch * 0.25);
  return values.map((value, index) => {
    if (value === 0) return null;
    // Even the smallest value must be visible.
    const height = Math.max(2, (value / top) * HEIGHT);
    const atMs = steps[index]?.atMs ?? 0;
    return (
      <rect
        key={atMs}
        x={rounded(index * pitch + gap / 2)}
        y={rounded(HEIGHT - height)}
        width={rounded(pitch - gap)}
        height={rounded(height)}
      >
        <title>{`${moment(atMs, span)}: ${exact(value)}`}</title>
      </rect>
    );
  });
}

const rounded = (value: number) => Math.round(value * 100) / 100;

const MOMENTS: Readonly<Record<SpanName, Intl.DateTimeFormat>> = {
  '24h': inUtc({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  '7d': inUtc({ weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  '30d': inUtc({ day: 'numeric', month: 'short' }),
};

function inUtc(options: Intl.DateTimeFormatOptions) {
  return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });
}

/** `14:00`, `Mon 14:00` or `31 Jan`. */
const moment = (atMs: number, span: SpanName): string => MOMENTS[span].format(atMs);
