import type { Clock } from './ports.js';

/**
 * Waits for `work`, but no longer than `ms`. After that the work goes on, and its result, or its failure, is not used.
 *
 * @param work that is under way.
 * @param late gives what is used in place of the result, or throws.
 * @throws what `work` or `late` throws.
 */
export async function inTime<T, Late>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<T>,
  late: () => Late,
): Promise<T | Late> {
  let cancel: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    cancel();
  }
}
