/** The formats of files with rows, and their names. */

export const TABLE_FORMATS = ['csv', 'json', 'jsonl'] as const;
export type TableFormat = (typeof TABLE_FORMATS)[number];

/** The format that the end of a name stands for; undefined for another end. */
export const formatOfName = (path: string): TableFormat | undefined =>
  TABLE_FORMATS.find((format) => path.toLowerCase().endsWith(`.${format}`));

/** `tokens-20300131-120000.csv`, by the time in UTC. */
export const fileNameAt = (what: string, nowMs: number): string =>
  `${what}-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}.csv`;
