/** Requests and failures over time, on the overview and on the pages of projects and tokens. */
import type { UsageQuery, WireUsageLine } from '../../api/contract.js';
import type { PageRequest } from '../page-request.js';
import { ChoiceLinks } from '../parts/common.js';
import { FAILURE_CHART, REQUEST_CHART, TimeCharts } from '../parts/time-chart.js';
import { bucketsOf, lastSteps, type Timeline } from '../parts/timeline.js';

/** The periods to choose from, with their resolution. */
const SPANS = {
  '24h': { title: '24 hours', step: 'hour', steps: 24 },
  '7d': { title: '7 days', step: 'hour', steps: 7 * 24 },
  '30d': { title: '30 days', step: 'day', steps: 30 },
} as const;

type SpanName = keyof typeof SPANS;

const spanNamed = (name: string | null): SpanName =>
  name !== null && Object.hasOwn(SPANS, name) ? (name as SpanName) : '24h';

/** Usage in a period. */
export interface Used {
  usage: readonly WireUsageLine[];
  spanName: SpanName;
  timeline: Timeline;
}

/** Usage in the period that the query of the page selects. */
export async function usageFor(
  { client, query, nowMs }: PageRequest,
  of: Omit<UsageQuery, 'by' | 'since'> = {},
): Promise<Used> {
  const spanName = spanNamed(query.get('span'));
  const { step, steps } = SPANS[spanName];
  const timeline = lastSteps(steps, step, nowMs);
  const usage = await client.usage({ ...of, by: step, since: new Date(timeline.fromMs).toISOString() });
  return { usage, spanName, timeline };
}

/** @param props.to the page that contains the charts, for the links to other periods. */
export function Traffic({ used: { usage, spanName, timeline }, to }: { used: Used; to: string }) {
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
        buckets={bucketsOf(usage, timeline)}
        charts={[REQUEST_CHART, FAILURE_CHART]}
      />
    </section>
  );
}
