import { readFileSync } from 'node:fs';
import type { Settings } from '../../config/settings.js';

/** Descriptors for the database, the audit files, Redis, Node itself, and connections that are accepted only to be refused. */
const RESERVED = 64;

export type ConnectionLimits = Pick<Settings, 'maxConnections' | 'upstreamConnections'>;

/** The limit of open files and sockets of this process; Infinity if the system does not report it. */
export function maxDescriptors(): number {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? Infinity : Number(limit);
  } catch {
    return Infinity;
  }
}

/**
 * Reduces the connection limits to the limit of descriptors. So many clients cannot use up the descriptors that upstream connections, the database
 * and files need: without a free descriptor the process cannot even reopen a file.
 */
export function limitToDescriptors(
  { maxConnections, upstreamConnections }: ConnectionLimits,
  descriptors: number,
): ConnectionLimits {
  const available = Math.max(2, descriptors - RESERVED);
  // Each client that is served needs one connection of each kind.
  const upstream = Math.min(upstreamConnections, Math.floor(available / 2));
  return { maxConnections: Math.min(maxConnections, available - upstream), upstreamConnections: upstream };
}
