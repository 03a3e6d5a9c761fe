/**
 * The indexes of the largest keys, largest first, without sorting all of them. NaN is no key. Yields after each `slice` keys.
 *
 * @returns up to `most` indexes; of equal keys the smaller index first.
 */
export function* firstOf(keys: Float64Array, most: number, slice: number): Generator<void, number[]> {
  // A heap whose first element is the smallest of the selected ones.
  const heap: number[] = [];
  const isBefore = (a: number, b: number) => (keys[a] ?? 0) > (keys[b] ?? 0) || (keys[a] === keys[b] && a < b);
  const swap = (a: number, b: number) => {
    const [first = 0, second = 0] = [heap[a], heap[b]];
    heap[a] = second;
    heap[b] = first;
  };
  const sink = (from: number) => {
    let at = from;
    for (;;) {
      let last = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && isBefore(heap[last] ?? 0, heap[child] ?? 0)) last = child;
      }
      if (last === at) return;
      swap(at, last);
      at = last;
    }
  };
  const select = (from: number, to: number) => {
    for (let index = from; index < to; index += 1) {
      if (Number.isNaN(keys[index])) continue;
      if (heap.length < most) {
        heap.push(index);
        if (heap.length === most) for (let at = most >> 1; at >= 0; at -= 1) sink(at);
      } else if (isBefore(index, heap[0] ?? 0)) {
        heap[0] = index;
        sink(0);
      }
    }
  };
  for (let from = 0; from < keys.length; from += slice) {
    select(from, Math.min(keys.length, from + slice));
    yield;
  }
  return heap.sort((a, b) => (isBefore(a, b) ? -1 : 1));
}
