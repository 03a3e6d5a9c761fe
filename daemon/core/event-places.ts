/** Where an event stands among all: two numbers, such as `1735689600000-0`, as Redis writes them. */

/** Null for what is none. */
export function placeFrom(text: string): readonly [number, number] | null {
  const [, ms, seq] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return ms === undefined || seq === undefined ? null : [Number(ms), Number(seq)];
}

/** Below 0 when `one` is before `other`. What is no place is before all. */
export function comparePlaces(one: string, other: string): number {
  const [aMs, aSeq] = placeFrom(one) ?? [-1, -1];
  const [bMs, bSeq] = placeFrom(other) ?? [-1, -1];
  return aMs - bMs || aSeq - bSeq;
}
