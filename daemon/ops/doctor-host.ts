/** Whether this machine can run a daemon: Node, and how many files and sockets it may have open. */
import { mostDescriptors, withinDescriptors } from '../process/descriptors.js';
import {
  type Around,
  type Family,
  type Finding,
  failed,
  ok,
  partOf,
  skipped,
  warning,
  WRONG_SETTINGS,
} from './doctor-finding.js';
import { readNodeRange } from '../../config/version.js';

export function nodeFamily(version = process.versions.node): Family {
  return { check: 'node', look: () => node(version) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- as the others are
async function* node(version: string): AsyncGenerator<Finding> {
  const range = readNodeRange();
  const needed = range.replace(/^>=/, '');
  if (version.localeCompare(needed, 'en', { numeric: true }) < 0) {
    yield failed(
      'node',
      `Node.js ${version}; llmp needs ${needed} or newer`,
      'Install a newer one: https://nodejs.org',
    );
  } else yield ok('node', `Node.js ${version}, ${needed} or newer is needed`);
}

export function descriptorsFamily(around: Around, most = mostDescriptors()): Family {
  return { check: 'descriptors', look: () => descriptors(around, most) };
}

// eslint-disable-next-line @typescript-eslint/require-await -- as the others are
async function* descriptors(around: Around, most: number): AsyncGenerator<Finding> {
  const check = 'descriptors';
  const wanted = partOf(around, ['maxConnections', 'upstreamConnections']);
  if (!wanted) {
    yield skipped(check, WRONG_SETTINGS);
    return;
  }
  if (most === Infinity) {
    yield skipped(check, 'this system does not say how many there may be');
    return;
  }
  const { maxConnections, upstreamConnections } = withinDescriptors(wanted, most);
  if (maxConnections === wanted.maxConnections && upstreamConnections === wanted.upstreamConnections) {
    yield ok(check, `${most} files and sockets may be open here, enough for all connections that the settings allow`);
    return;
  }
  yield warning(
    check,
    `${most} files and sockets may be open here: room for ${maxConnections} clients and ${upstreamConnections} connections to the upstream, not ${wanted.maxConnections} and ${wanted.upstreamConnections}`,
    'ulimit -n 65536; under systemd LimitNOFILE=65536',
  );
}
