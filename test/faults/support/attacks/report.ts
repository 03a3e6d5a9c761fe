/** The results of attacks as a table. */
import type { Phase, SceneResult } from './scene.js';

const COLUMNS = [
  'attack',
  'p50 / p99 before',
  'during',
  'after',
  '+MB',
  'heap MB',
  'CPU ms',
  'others',
  'attackers',
  'ended',
];

export const TABLE_HEAD = `| ${COLUMNS.join(' | ')} |\n|${COLUMNS.map(() => ' --- ').join('|')}|`;

const ms = (value: number | null) => value?.toFixed(value < 100 ? 1 : 0) ?? '-';
const times = ({ p50Ms, p99Ms }: Phase) => `${ms(p50Ms)} / ${ms(p99Ms)}`;
const counts = (of: Record<string | number, number>) =>
  Object.entries(of)
    .map(([what, count]) => `${count}×${what}`)
    .join(' ');

export function rowOf(title: string, result: SceneResult): string {
  const { before, during, after, attackers, uses } = result;
  const cells = [
    title,
    times(before),
    times(during),
    times(after),
    `${(result.rssPeakMb - result.rssBeforeMb).toFixed(0)} (${result.rssBeforeMb.toFixed(0)} → ${result.rssPeakMb.toFixed(0)} → ${result.rssAfterMb.toFixed(0)})`,
    `${result.heapBeforeMb.toFixed(0)} → ${result.heapPeakMb.toFixed(0)}, external ${result.externalPeakMb.toFixed(0)}`,
    `${result.cpuMs.toFixed(0)} (${result.cpuMsPerMb?.toFixed(0) ?? '-'} per MB)`,
    `${counts(during.statuses)}; after ${counts(after.statuses)}`,
    `${attackers.held} of ${attackers.opened} held; ${counts(attackers.ended)}; statuses ${counts(attackers.statuses)}; ${(attackers.sentBytes / 1e6).toFixed(1)} MB out, ${(attackers.receivedBytes / 1e6).toFixed(1)} in, provider ${result.providerSentMb.toFixed(1)}`,
    [
      result.died === null ? 'lives' : `DIED ${result.died}`,
      ...(result.workersLost > 0 ? [`${result.workersLost} workers lost`] : []),
      result.died !== null
        ? ''
        : result.stopMs === null
          ? 'SIGTERM did not end it'
          : `stopped in ${ms(result.stopMs)} ms${result.stopCode === 0 ? '' : `, EXIT CODE ${result.stopCode ?? 'none'}`}`,
      ...Object.entries(uses).map(
        ([who, { forwarded, counted, reported }]) =>
          `${who}: ${forwarded} forwarded, ${counted} counted, ${reported} reported`,
      ),
    ]
      .filter(Boolean)
      .join('; '),
  ];
  return `| ${cells.join(' | ')} |`;
}
