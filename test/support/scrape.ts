/** Metrics as Prometheus parses them: its text format, strictly. */
import { expect } from 'chai';

export interface Series {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE =
  /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[\d.]+(?:e[+-]?\d+)?|Na[nN]|\+Inf|-Inf)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** @throws if a line is not in the format. */
export function seriesIn(text: string): Series[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
      if (name === '') throw new Error(`not a line of metrics: ${line}`);
      const unescaped = (it: string) => it.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
      const pairs = [...labels.matchAll(LABEL)].map(([, key = '', text = '']) => [key, unescaped(text)]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
}

/** The sum of all series with this name and these labels. */
export function sumOf(series: readonly Series[], name: string, labels: Record<string, string> = {}): number {
  const fits = (it: Series) =>
    it.name === name && Object.entries(labels).every(([key, value]) => it.labels[key] === value);
  return series.filter(fits).reduce((sum, { value }) => sum + value, 0);
}

/** @param url of the metrics. */
export async function scraped(url: string): Promise<Series[]> {
  const response = await fetch(url);
  expect(response.status, await response.clone().text()).to.equal(200);
  return seriesIn(await response.text());
}
