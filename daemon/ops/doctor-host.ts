/** Doctor checks of this machine: the version of Node.js, and the limit of open files and sockets. */
import { type ConnectionLimits, maxDescriptors, limitToDescriptors } from '../process/descriptors.js';
import {
  type DoctorContext,
  type CheckGroup,
  type Finding,
  checksWith,
  failed,
  ok,
  skipped,
  warning,
} from './doctor-finding.js';
import { endOfSupport } from '../../config/node-support.js';
import { readNodeRange } from '../../config/version.js';

/** @param now in milliseconds since 1970. */
export function nodeChecks(now: number, version = process.versions.node): CheckGroup {
  return { check: 'node', run: () => node(version, now) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- has the type of the other checks
async function* node(version: string, now: number): AsyncGenerator<Finding> {
  const range = readNodeRange();
  const needed = range.replace(/^>=/, '');
  if (version.localeCompare(needed, 'en', { numeric: true }) < 0) {
    yield failed(
      'node',
      `Node.js ${version}; llmp needs ${needed} or newer`,
      'Install a newer release: https://nodejs.org',
    );
    return;
  }
  const ended = endOfSupport(version, now);
  if (ended) yield warning('node', ended.problem, ended.advice);
  else yield ok('node', `Node.js ${version} (${needed} or newer is required)`);
}

export const descriptorChecks = (context: DoctorContext, limit = maxDescriptors()): CheckGroup =>
  checksWith('descriptors', context, ['maxConnections', 'upstreamConnections'], (wanted) => descriptors(wanted, limit));

// eslint-disable-next-line @typescript-eslint/require-await -- has the type of the other checks
async function* descriptors(wanted: ConnectionLimits, limit: number): AsyncGenerator<Finding> {
  const check = 'descriptors';
  if (limit === Infinity) {
    yield skipped(check, 'this system does not report its limit of open files');
    return;
  }
  const { maxConnections, upstreamConnections } = limitToDescriptors(wanted, limit);
  if (maxConnections === wanted.maxConnections && upstreamConnections === wanted.upstreamConnections) {
    yield ok(check, `limit of ${limit} open files, enough for the connections that the settings allow`);
    return;
  }
  yield warning(
    check,
    `limit of ${limit} open files: enough for ${maxConnections} client and ${upstreamConnections} upstream connections, but the settings allow ${wanted.maxConnections} and ${wanted.upstreamConnections}`,
    'Raise the limit: ulimit -n 65536, or LimitNOFILE=65536 in the unit of systemd',
  );
}
