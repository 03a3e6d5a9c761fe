import { readFileSync } from 'node:fs';
import type { Settings } from '../../config/settings.js';

/** For the database, the audit files, Redis, what Node itself has open, and those who are to be told that there is no room. */
const RESERVED = 64;

export type Connections = Pick<Settings, 'maxConnections' | 'upstreamConnections'>;

/** How many files and sockets this process may have open at a time; Infinity where the system does not say. */
export function mostDescriptors(): number {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? Infinity : Number(limit);
  } catch {
    return Infinity;
  }
}

/**
 * How many connections there may be, so that a crowd of clients takes the last descriptor neither from the upstream nor from the
 * database: with none left even a file that was open before cannot be opened again.
 */
export function withinDescriptors({ maxConnections, upstreamConnections }: Connections, most: number): Connections {
  const room = Math.max(2, most - RESERVED);
  // Who is served needs one of each kind.
  const upstream = Math.min(upstreamConnections, Math.floor(room / 2));
  return { maxConnections: Math.min(maxConnections, room - upstream), upstreamConnections: upstream };
}
