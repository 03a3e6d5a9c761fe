/** Stream IDs of events, in the format of Redis: two numbers, such as `1735689600000-0`, that define the order. */

/** @returns null if the text is not a stream ID. */
export function parseStreamId(text: string): readonly [number, number] | null {
  const [, ms, seq] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return ms === undefined || seq === undefined ? null : [Number(ms), Number(seq)];
}

/** Negative if `one` is before `other`. An invalid ID is before all others. */
export function compareStreamIds(one: string, other: string): number {
  const [aMs, aSeq] = parseStreamId(one) ?? [-1, -1];
  const [bMs, bSeq] = parseStreamId(other) ?? [-1, -1];
  return aMs - bMs || aSeq - bSeq;
}
