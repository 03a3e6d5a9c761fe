/** As many sequential requests as a cap allows, each to any of several instances. All of them must be admitted. */
import { expect } from 'chai';
import { type Random, seededRandom } from '../../support/model.js';
import type { DaemonGroup } from '../../support/daemon-group.js';

const MOST_CAP = 40;
// From here on an instance holds more units than it was asked for.
const SEVERAL_AT_ONCE = 32;
const AT_A_TIME = 2;
// Mostly the same instance as before, so that the others hold units that no request draws.
const ELSEWHERE = 0.2;
// A settlement interval; the time after which an instance returns units; longer than anything is trusted.
const PAUSES_MS = [300, 1_200, 31_000];
const PAUSES = 0.1;

interface Case {
  seed: number;
  cap: number;
  secret: string;
  random: Random;
  asked: number;
  /** The instance that was used last. */
  index: number;
}

/** Runs this number of seeds. Several tokens are used at a time, so that they are settled together. */
export async function runSequentialRequests(several: DaemonGroup, firstSeed: number, seeds: number): Promise<void> {
  const { id } = await several.at(0).createProject();
  for (let seed = firstSeed; seed < firstSeed + seeds; seed += AT_A_TIME) {
    const count = Math.min(AT_A_TIME, firstSeed + seeds - seed);
    const cases = await Promise.all(Array.from({ length: count }, (_, n) => begin(several, id, seed + n)));
    const random = seededRandom(seed);
    for (let open = cases; open.length > 0; open = open.filter(({ asked, cap }) => asked <= cap)) {
      await Promise.all(open.map((one) => askOnce(several, one)));
      if (random() < PAUSES) await pause(several, PAUSES_MS[Math.floor(random() * PAUSES_MS.length)] ?? 0);
    }
  }
}

async function begin(several: DaemonGroup, projectId: string, seed: number): Promise<Case> {
  const random = seededRandom(seed);
  const least = random() < 0.5 ? 1 : SEVERAL_AT_ONCE;
  const cap = least + Math.floor(random() * (MOST_CAP - least + 1));
  const { token } = await anyOf(several, random).createToken(projectId, { max_requests: cap });
  return { seed, cap, secret: token, random, asked: 0, index: 0 };
}

async function askOnce(several: DaemonGroup, one: Case): Promise<void> {
  const { seed, cap, secret, random } = one;
  one.asked += 1;
  // One request to each instance first, so that each may take units.
  const { length } = several.daemons;
  if (one.asked <= length) one.index = one.asked - 1;
  else if (random() < ELSEWHERE) one.index = Math.floor(random() * length);
  const { status } = await several.at(one.index).call(secret);
  expect(status, `seed ${seed}: request ${one.asked} of ${cap}`).to.equal(one.asked <= cap ? 200 : 429);
}

const anyOf = (several: DaemonGroup, random: Random) => several.at(Math.floor(random() * several.daemons.length));

/** Time passes for all instances. Nothing may wait for the database meanwhile, or it would take the database for silent. */
async function pause({ daemons }: DaemonGroup, ms: number): Promise<void> {
  for (const { daemon } of daemons) await daemon.clusterSync?.poll();
  for (const { clock } of daemons) clock.advance(ms);
}
