/** What the three programs in TypeScript have in common; each does the main job with a client of its own. */

export const url = process.env.LLMP_URL ?? '';
export const managementToken = process.env.LLMP_TOKEN ?? '';
export const label = process.argv[2] ?? 'client';

export function check(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(what);
}

/** The same moment, as somebody in India writes it. */
export function withOffset(ms: number): string {
  return new Date(ms + 19_800_000).toISOString().replace('Z', '+05:30');
}

/** The cursor of the next page, from a Link header. */
export function nextCursor(link: string | null): string | undefined {
  const target = /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];
  return target === undefined ? undefined : (new URL(target, url).searchParams.get('cursor') ?? undefined);
}

export const HOUR = 3_600_000;
