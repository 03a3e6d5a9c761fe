/** Requests and failures over time, on the overview and on the pages of projects and tokens. */
import type { WireUsageLine } from '../../api/contract.js';
import { useFrame } from './frame.js';
import { ChoiceLinks } from './parts.js';
import { FAILURE_CHART, REQUEST_CHART, TimeCharts } from './time-chart.js';
import { bucketsOf, lastSteps, type Timeline } from './timeline.js';

/** The periods to choose from, with their resolution. */
const SPANS = {
  '24h': { title: '24 hours', step: 'hour', steps: 24 },
  '7d': { title: '7 days', step: 'hour', steps: 7 * 24 },
  '30d': { title: '30 days', step: 'day', steps: 30 },
} as const;

export type SpanName = keyof typeof SPANS;

export const spanNamed = (name: string | null): SpanName =>
  name !== null && Object.hasOwn(SPANS, name) ? (name as SpanName) : '24h';

export function timelineOf(spanName: SpanName, nowMs: number): Timeline {
  const { step, steps } = SPANS[spanName];
  return lastSteps(steps, step, nowMs);
}

export interface TrafficProps {
  lines: readonly WireUsageLine[];
  spanName: SpanName;
  /** The page that contains the charts, for the links to other periods. */
  to: string;
}

export function Traffic({ lines, spanName, to }: TrafficProps) {
  const timeline = timelineOf(spanName, useFrame().nowMs);
  return (
    <section aria-labelledby="traffic-title" id="traffic" data-live="">
      <div className="section-head">
        <h2 id="traffic-title">Traffic</h2>
        <ChoiceLinks
          label="Time shown"
          links={(Object.keys(SPANS) as SpanName[]).map((name) => ({
            title: SPANS[name].title,
            to: `${to}?span=${name}`,
            isCurrent: name === spanName,
          }))}
        />
      </div>
      <TimeCharts
        id="traffic-table"
        timeline={timeline}
        buckets={bucketsOf(lines, timeline)}
        charts={[REQUEST_CHART, FAILURE_CHART]}
      />
    </section>
  );
}
