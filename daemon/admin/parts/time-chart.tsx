/**
 * Stacked bars over time with labelled axes. Positions are percentages of the drawing, so that it fits every width without distorting
 * the texts. The numbers are also in a table (`BucketTable`), because a drawing is not accessible to everyone.
 */
import { FAILURE_TITLES } from '../../api/failure-words.js';
import { counted, exact } from '../../api/formats.js';
import { FAILURE_KINDS } from '../../api/vocabulary.js';
import { Figure } from './formats.js';
import { WideTable } from './common.js';
import { type Bucket, marksOf, STEP_MS, sumOf, ticksUpTo, type Timeline, timeOf } from './timeline.js';

interface Series {
  name: string;
  /** Class name that sets the colour. */
  look: 'forwarded' | 'hits' | 'failures' | 'refused' | 'upstream-refused' | 'cut' | 'prompt' | 'completion';
  count: Exclude<keyof Bucket, 'atMs'>;
}

interface Chart {
  title: string;
  unit: 'request' | 'token';
  /** From the bottom of a bar to its top. */
  series: readonly [Series, ...Series[]];
}

interface TimeChartProps extends Chart {
  timeline: Timeline;
  buckets: readonly Bucket[];
}

interface TimeChartsProps extends Pick<TimeChartProps, 'timeline' | 'buckets'> {
  /** ID of the table. */
  id: string;
  charts: readonly Chart[];
}

/** Charts of the same period, with their numbers as a table. */
export function TimeCharts({ id, charts, ...shown }: TimeChartsProps) {
  return (
    <>
      <div className="charts">
        {charts.map((chart) => (
          <TimeChart key={chart.title} {...chart} {...shown} />
        ))}
      </div>
      <BucketTable id={id} {...shown} />
    </>
  );
}

function TimeChart(props: TimeChartProps) {
  const { title, unit, timeline, buckets, series } = props;
  const totals = buckets.map((bucket) => sumOf(series.map(({ count }) => bucket[count])));
  const total = sumOf(totals);
  const most = Math.max(...totals);
  const ticks = ticksUpTo(most);
  const top = ticks.at(-1) ?? 1;
  const { step } = timeline;
  const shares = series.map(({ name, count }) => `${name} ${exact(sumOf(buckets.map((it) => it[count])))}`);
  const summary =
    total === 0
      ? `${title}: none`
      : `${title}: ${exact(total)}, up to ${exact(most)} per ${step}. ${shares.join(', ')}`;
  return (
    <figure className="chart">
      <figcaption>
        <strong>{`${title} per ${step}`}</strong>
        <span className="faint">{`${counted(total, unit)} in total, times in UTC`}</span>
      </figcaption>
      {series.length > 1 ? <Legend series={series} buckets={buckets} /> : null}
      <svg className="scale" aria-hidden="true">
        {ticks.map((tick) => (
          <text key={tick} x="100%" y={percent(1 - tick / top)} dy="0.32em" textAnchor="end">
            {shortNumber(tick)}
          </text>
        ))}
      </svg>
      <svg className="plot" role="img" aria-label={summary}>
        {ticks.map((tick) => (
          <line key={tick} x1="0" x2="100%" y1={percent(1 - tick / top)} y2={percent(1 - tick / top)} />
        ))}
        {buckets.map((bucket, index) => (
          <Bar key={bucket.atMs} {...props} bucket={bucket} index={index} top={top} />
        ))}
      </svg>
      <svg className="times" aria-hidden="true">
        {marksOf(timeline).map(({ atMs, label }, index) => (
          <text
            key={atMs}
            {...markPosition(atMs, timeline)}
            y="0.75em"
            className={index % 2 === 1 ? 'second' : undefined}
          >
            {label}
          </text>
        ))}
      </svg>
    </figure>
  );
}

const percent = (share: number) => `${Math.round(share * 100_000) / 1000}%`;

// Locale-independent, because server and browser may differ.
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const shortNumber = (value: number) => (value < 10_000 ? exact(value) : COMPACT.format(value));

/** A mark is below the bar of its hour or day, and inside the drawing. */
function markPosition(atMs: number, { fromMs, toMs, step }: Timeline) {
  const at = (atMs + STEP_MS[step] / 2 - fromMs) / (toMs - fromMs);
  const textAnchor = at < 0.06 ? 'start' : at > 0.94 ? 'end' : 'middle';
  return { x: percent(at < 0.06 ? 0 : at > 0.94 ? 1 : at), textAnchor } as const;
}

function Legend({ series, buckets }: Pick<TimeChartProps, 'series' | 'buckets'>) {
  return (
    <ul className="legend">
      {series.map(({ name, look, count }) => (
        <li key={name}>
          <svg className="swatch" viewBox="0 0 10 10" aria-hidden="true">
            <rect className={look} width="10" height="10" />
          </svg>
          {name} <span className="count">{exact(sumOf(buckets.map((it) => it[count])))}</span>
        </li>
      ))}
    </ul>
  );
}

// Even the smallest value must be visible.
const MIN_HEIGHT = 0.015;

interface BarProps extends TimeChartProps {
  bucket: Bucket;
  index: number;
  /** Value of a bar of full height. */
  top: number;
}

function Bar({ bucket, index, top, timeline: { step }, buckets, series, unit }: BarProps) {
  const parts = series.filter(({ count }) => bucket[count] > 0);
  if (parts.length === 0) return null;
  const pitch = 1 / buckets.length;
  const gap = Math.min(0.004, pitch * 0.2);
  const across = { x: percent(index * pitch + gap / 2), width: percent(pitch - gap) };
  const words = parts.map(({ name, count }) => `${name} ${exact(bucket[count])}`).join(', ');
  const total = sumOf(parts.map(({ count }) => bucket[count]));
  let below = 0;
  return (
    <g>
      <title>{`${timeOf(bucket.atMs, step)} UTC: ${counted(total, unit)}${series.length > 1 ? `. ${words}` : ''}`}</title>
      {parts.map(({ look, count }) => {
        const height = Math.max(MIN_HEIGHT, bucket[count] / top);
        below += height;
        return <rect key={look} className={look} {...across} y={percent(1 - below)} height={percent(height)} />;
      })}
      <rect className="hover" x={percent(index * pitch)} width={percent(pitch)} y="0" height="100%" />
    </g>
  );
}

/** The numbers of the charts, newest first. Hours and days without requests are left out. */
function BucketTable({ id, timeline: { step }, buckets }: Omit<TimeChartsProps, 'charts'>) {
  const rows = buckets.filter(({ requests }) => requests > 0).reverse();
  const figure = (title: string, count: Series['count']) => ({
    title,
    isNumber: true,
    show: (bucket: Bucket) => <Figure value={bucket[count]} />,
  });
  if (rows.length === 0) return null;
  return (
    <details id={`${id}-numbers`}>
      <summary>Show the numbers as a table</summary>
      <WideTable
        id={id}
        label={`Requests and model tokens per ${step}`}
        rows={rows}
        keyOf={({ atMs }) => String(atMs)}
        columns={[
          { title: step === 'hour' ? 'Hour (UTC)' : 'Day (UTC)', show: ({ atMs }) => timeOf(atMs, step) },
          figure('Requests', 'requests'),
          figure('Cache hits', 'hits'),
          figure('Failures', 'errors'),
          ...FAILURE_KINDS.map((kind) => figure(FAILURE_TITLES[kind], kind)),
          figure('Prompt tokens', 'prompt_tokens'),
          figure('Completion tokens', 'completion_tokens'),
        ]}
      />
    </details>
  );
}

// ---- the charts

export const REQUEST_CHART: Chart = {
  title: 'Requests',
  unit: 'request',
  series: [
    { name: 'From the provider', look: 'forwarded', count: 'forwarded' },
    { name: 'Cache hits', look: 'hits', count: 'hits' },
    { name: 'Failures', look: 'failures', count: 'errors' },
  ],
};

export const FAILURE_CHART: Chart = {
  title: 'Failures',
  unit: 'request',
  series: [
    { name: FAILURE_TITLES.failed, look: 'failures', count: 'failed' },
    { name: FAILURE_TITLES.upstream_refused, look: 'upstream-refused', count: 'upstream_refused' },
    { name: FAILURE_TITLES.refused, look: 'refused', count: 'refused' },
    { name: FAILURE_TITLES.cut, look: 'cut', count: 'cut' },
  ],
};

export const TOKEN_CHART: Chart = {
  title: 'Model tokens',
  unit: 'token',
  series: [
    { name: 'Prompt', look: 'prompt', count: 'prompt_tokens' },
    { name: 'Completion', look: 'completion', count: 'completion_tokens' },
  ],
};
