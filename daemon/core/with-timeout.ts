import type { Clock } from './ports.js';

/**
 * Waits for `work` up to `ms`. After that the work continues, and its result or failure is ignored.
 *
 * @param work a promise for work in progress.
 * @param late returns the result to use after the timeout, or throws.
 * @throws what `work` or `late` throws.
 */
export async function withTimeout<T, Late>(
  clock: Pick<Clock, 'after'>,
  ms: number,
  work: Promise<T>,
  late: () => Late,
): Promise<T | Late> {
  let cancel: () => void = () => undefined;
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  try {
    return await Promise.race([work, timeout.then(late)]);
  } finally {
    cancel();
  }
}
