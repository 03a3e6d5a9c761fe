/**
 * Other gateways, named by the environment:
 *
 *   BENCH_PEER_1="NAME=COMMAND"   the command listens on 127.0.0.1:{port} and forwards to {upstream}, a base URL without /v1
 *   BENCH_PEER_1_KEY=KEY          optional: what its clients send as their bearer token
 *   BENCH_PEER_1_CAPPED_KEY=KEY   optional: a key whose requests are counted up to a cap, which must be far away
 *   BENCH_PEER_1_READY=PATH       optional: a path that responds when it is ready; / by default
 *
 * Up to BENCH_PEER_9. A command is split at spaces; there is no shell.
 */
import type { Measurable } from './baselines.js';
import { freePort } from '../support/ports.js';
import type { Bench } from './run.js';
import { UsageError } from './usage-error.js';

const MOST = 9;

/** @throws {UsageError} for a variable without a name or command. */
export async function startPeers({ processes, cores }: Bench, upstreamUrl: string): Promise<Measurable[]> {
  const peers: Measurable[] = [];
  for (let n = 1; n <= MOST; n++) {
    const variable = `BENCH_PEER_${n}`;
    const given = process.env[variable];
    if (given === undefined) continue;
    const [, name, commandLine] = /^([^=]+)=(.+)$/.exec(given) ?? [];
    if (name === undefined || commandLine === undefined) throw new UsageError(`${variable} is NAME=COMMAND`);
    const port = await freePort();
    const words = commandLine.split(' ').filter((word) => word !== '');
    const [command = '', ...args] = words.map((word) =>
      word.replaceAll('{port}', String(port)).replaceAll('{upstream}', upstreamUrl),
    );
    const url = `http://127.0.0.1:${port}`;
    const answersAt = url + (process.env[`${variable}_READY`] ?? '/');
    const service = await processes.start({ name, command, args, cores: cores.measured }, { answersAt });
    const targetOf = (key: string) => ({ url, headers: { authorization: `Bearer ${key}` } });
    const target = targetOf(process.env[`${variable}_KEY`] ?? 'sk-no-key');
    const cappedKey = process.env[`${variable}_CAPPED_KEY`];
    peers.push({ name, service, target, ...(cappedKey !== undefined && { capped: targetOf(cappedKey) }) });
  }
  return peers;
}
