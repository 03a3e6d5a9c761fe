import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../core/ports.js';

// A resolver that is there answers in a few milliseconds.
const PATIENCE_MS = 100;
const MOST_NAMES = 100;

type Answer = [address: string | LookupAddress[], family?: number];

/**
 * Looks names up as Node does, but waits a moment at most for what it knew before. Node's look-ups share a few threads with files
 * and databases: while those hang, on a disk or on a lock, no new connection to the upstream could be made. What the look-up says
 * in the end is what the next one knows.
 */
export function rememberedNames(clock: Clock): LookupFunction {
  const known = new Map<string, Answer>();
  return (name, options, callback) => {
    const key = keyOf(name, options);
    let isAnswered = false;
    const answer = (...result: Parameters<typeof callback>) => {
      if (isAnswered) return;
      isAnswered = true;
      cancel();
      callback(...result);
    };
    const before = known.get(key);
    const cancel = before
      ? clock.after(PATIENCE_MS, () => {
          answer(null, ...before);
        })
      : () => undefined;
    dns.lookup(name, options, (error: NodeJS.ErrnoException | null, ...found: Answer) => {
      if (!error) remember(known, key, found);
      answer(error, ...found);
    });
  };
}

const keyOf = (name: string, { all, family, hints, order }: LookupOptions) =>
  JSON.stringify([name, all, family, hints, order]);

function remember(known: Map<string, Answer>, key: string, answer: Answer): void {
  known.delete(key);
  known.set(key, answer);
  const [oldest] = known.keys();
  if (known.size > MOST_NAMES && oldest !== undefined) known.delete(oldest);
}
