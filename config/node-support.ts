/** Which releases of Node.js get security fixes. See https://github.com/nodejs/Release. */

/** The last day with security fixes of each release with long-term support, in UTC. Those between them have had none for months. */
const LAST_DAYS: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
  26: '2029-04-30',
};

/** What to install instead: releases that the tests pass with, in this order. They pass with 22 too, which ends before these. */
const RECOMMENDED: readonly number[] = [24, 26];

const NEWEST = Math.max(...Object.keys(LAST_DAYS).map(Number));

export interface EndOfSupport {
  problem: string;
  /** What to do. */
  advice: string;
}

/**
 * @param version of Node.js, such as `20.19.0`. @param now in milliseconds since 1970.
 * @returns null if the release gets security fixes, or is newer than those that are known here.
 */
export function endOfSupport(version: string, now: number): EndOfSupport | null {
  const major = Number.parseInt(version, 10);
  const lastDay = LAST_DAYS[major];
  if (major > NEWEST || (lastDay !== undefined && isSupported(lastDay, now))) return null;
  const fixes = lastDay === undefined ? 'gets no security fixes' : `has had no security fixes since ${lastDay}`;
  const recommended = RECOMMENDED.find((each) => isSupported(LAST_DAYS[each] ?? '', now));
  const instead = recommended === undefined ? 'a newer release of Node.js' : `Node.js ${recommended}`;
  return {
    problem: `Node.js ${version} ${fixes}`,
    advice: `Install ${instead}, or a newer llmp if Node.js came with it`,
  };
}

/** The last day belongs to the support. */
const isSupported = (lastDay: string, now: number) => new Date(now).toISOString().slice(0, 10) <= lastDay;
