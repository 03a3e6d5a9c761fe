import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isMetadataAddress } from '../../../config/metadata-addresses.js';
import type { Clock } from '../../core/ports.js';

// A working resolver responds within a few milliseconds.
const USE_REMEMBERED_AFTER_MS = 100;
const MAX_NAMES = 100;

type LookupResult = [address: string | LookupAddress[], family?: number];

/**
 * DNS lookup like Node's, but with the previous result as a fallback after 100 ms. Node's lookups share a few threads with files and
 * databases; while those hang on a disk or a lock, no new upstream connection could be opened. A late result is remembered for the next
 * lookup.
 *
 * A name that leads to a metadata address is not resolved: the base URL of a project could otherwise reach the credentials of this machine.
 */
export function rememberingLookup(clock: Clock): LookupFunction {
  const known = new Map<string, LookupResult>();
  return (name, options, callback) => {
    const key = keyOf(name, options);
    let isComplete = false;
    const complete = (...result: Parameters<typeof callback>) => {
      if (isComplete) return;
      isComplete = true;
      cancel();
      callback(...result);
    };
    const before = known.get(key);
    const cancel = before
      ? clock.after(USE_REMEMBERED_AFTER_MS, () => {
          complete(null, ...before);
        })
      : () => undefined;
    dns.lookup(name, options, (error: NodeJS.ErrnoException | null, ...found: LookupResult) => {
      if (!error && addressesOf(found).some(isMetadataAddress)) {
        complete(new Error(`${name} leads to a link-local or cloud metadata address`), '');
        return;
      }
      if (!error) remember(known, key, found);
      complete(error, ...found);
    });
  };
}

const keyOf = (name: string, { all, family, hints, order }: LookupOptions) =>
  JSON.stringify([name, all, family, hints, order]);

const addressesOf = ([found]: LookupResult) =>
  typeof found === 'string' ? [found] : found.map(({ address }) => address);

function remember(known: Map<string, LookupResult>, key: string, result: LookupResult): void {
  known.delete(key);
  known.set(key, result);
  const [oldest] = known.keys();
  if (known.size > MAX_NAMES && oldest !== undefined) known.delete(oldest);
}
