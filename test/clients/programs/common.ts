/** Code shared by the three TypeScript programs, each of which uses another generated client for the same tasks. */

export const url = process.env.LLMP_URL ?? '';
export const managementToken = process.env.LLMP_TOKEN ?? '';
export const label = process.argv[2] ?? 'client';

export function check(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(what);
}

/** An RFC 3339 timestamp with the offset of India. */
export function withOffset(ms: number): string {
  return new Date(ms + 19_800_000).toISOString().replace('Z', '+05:30');
}

/** The cursor of the next page, from a Link header. */
export function nextCursor(link: string | null): string | undefined {
  const target = /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];
  return target === undefined ? undefined : (new URL(target, url).searchParams.get('cursor') ?? undefined);
}

export const HOUR = 3_600_000;
