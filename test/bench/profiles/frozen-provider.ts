/**
 * One provider is frozen, and requests of its project wait for it: the effect on requests of a project on another provider. Two daemons under
 * the same load, one of them with the waiting requests.
 */
import { request } from 'node:http';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { startProvider } from '../baselines.js';
import { startDaemon } from '../daemon.js';
import type { Figure } from '../figures.js';
import { probe, type Target } from '../load.js';
import { manage } from '../management.js';
import { Failure } from '../processes.js';
import { CHAT } from '../requests.js';
import { compare, ratio, rowsOf } from '../rounds.js';
import type { Bench, Report } from '../run.js';

const ALONE = 'every provider well';
const BESIDE = 'another provider frozen';
const WAITING = 256;

export async function frozenProvider(bench: Bench): Promise<Report> {
  const provider = await startProvider(bench);
  const frozen = await startProvider(bench);
  const [alone, beside] = [await startDaemon(bench, provider.url), await startDaemon(bench, provider.url)];
  const target = await targetOn(frozen.url, beside.url);
  await probe(target);
  process.kill(frozen.pid, 'SIGSTOP');
  const waiting = wait(target);
  const rounds = await compare(bench, [
    { name: ALONE, service: alone, target: await alone.targetWithToken(0) },
    { name: BESIDE, service: beside, target: await beside.targetWithToken(0) },
  ]);
  if (waiting.ended > 0) throw new Failure(`void: ${waiting.ended} requests did not wait for the frozen provider`);
  const figures: Figure[] = [
    {
      what: 'p99, frozen against well',
      value: ratio(rounds, BESIDE, ALONE, ({ p99Ms }) => p99Ms),
      unit: '',
      goal: { atMost: 1.2 },
    },
    {
      what: 'requests/s, frozen against well',
      value: ratio(rounds, BESIDE, ALONE, ({ requestsPerS }) => requestsPerS),
      unit: '',
    },
  ];
  return { rows: rowsOf(rounds), figures };
}

/** A token of a project on this provider. */
async function targetOn(providerUrl: string, url: string): Promise<Target> {
  const project = await manage<WireProject>(url, 'POST', '/manage/projects', {
    name: 'frozen',
    api_key: 'sk-upstream-of-the-frozen-one',
    upstream_base_url: providerUrl,
  });
  const { token } = await manage<WireTokenCreated>(url, 'POST', '/manage/tokens', { project_id: project.id });
  return { url, headers: { authorization: `Bearer ${token}` } };
}

/** Sends the requests that wait. Their connections end with the daemon. */
function wait({ url, headers }: Target): { ended: number } {
  const waiting = { ended: 0 };
  const count = () => {
    waiting.ended += 1;
  };
  for (let n = 0; n < WAITING; n++) {
    request(url + CHAT.path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      agent: false,
    })
      .on('response', count)
      .on('error', count)
      .end(CHAT.body);
  }
  return waiting;
}
