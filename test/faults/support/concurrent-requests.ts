/** Many requests at once for one token with a cap, to all instances of a fleet, some of which may be killed meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { WireProject, WireTokenCreated } from '../../../daemon/api/contract.js';
import { eventually } from '../../support/eventually.js';
import type { Fleet, Member } from '../../support/fleet.js';
import { type Random, seededRandom } from '../../support/model.js';

export const PARALLEL = 500;
export const CAP = 100;
const MOST_KILLS = 3;
const KILLED_WITHIN_MS = 1_200;
const MOST_TRIES = 4;

export type Outcome = number | 'broken';

/** The number of requests by outcome. */
export function tally(outcomes: readonly (Outcome | null)[]): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const outcome of outcomes) counts[outcome ?? 'broken'] = (counts[outcome ?? 'broken'] ?? 0) + 1;
  return counts;
}

/** 500 requests with a cap of 100, without kills. @param meanwhile starts at the same time. */
export async function expectExactCap(
  fleet: Fleet,
  project: WireProject,
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const token = await fleet.createToken(project.id, CAP);
  const asked = Array.from({ length: PARALLEL }, (_, n) => fleet.at(n).call(token));
  await meanwhile?.();
  expect(tally(await Promise.all(asked))).to.deep.equal({ 200: CAP, 429: PARALLEL - CAP });
  expect(fleet.reached(token.id)).to.equal(CAP);
  await eventually('all are counted', async () => (await fleet.counted(token.id)).requestCount === CAP);
  const { reserved, leased } = await fleet.counted(token.id);
  expect({ reserved, leased }).to.deep.equal({ reserved: CAP, leased: 0 });
}

export interface KillReport {
  kills: number;
  reached: number;
  /** How many units of the cap the kills lost. */
  lost: number;
  outcomes: Partial<Record<Outcome, number>>;
}

/**
 * The same while instances are killed and restarted. A client whose connection breaks tries another instance. @throws if the cap or the
 * count is wrong.
 */
export async function runWithKills(fleet: Fleet, project: WireProject, seed: number): Promise<KillReport> {
  const random = seededRandom(seed);
  fleet.thinkMs = () => random() * 60;
  const token = await fleet.createToken(project.id, CAP);
  const calling = Array.from({ length: PARALLEL }, () => persistently(fleet, token, random));
  const victims = [...fleet.members].sort(() => random() - 0.5).slice(0, 1 + Math.floor(random() * MOST_KILLS));
  await Promise.all(victims.map((victim) => killAndBegin(fleet, victim, random)));
  const outcomes = tally(await Promise.all(calling));
  await fleet.expireSilent(fleet.at(Math.floor(random() * fleet.members.length)));
  await settled(fleet, token);

  const reached = fleet.reached(token.id);
  const { requestCount, reserved, leased } = await fleet.counted(token.id);
  const said = `seed ${seed}: ${reached} reached, ${requestCount} counted, ${reserved} reserved, ${leased} leased`;
  expect(reached, said).to.be.at.most(CAP);
  expect(requestCount, said).to.be.within(Math.max(reached, outcomes[200] ?? 0), CAP);
  expect(reserved, said).to.equal(requestCount + leased);
  const strange = Object.keys(outcomes).filter((outcome) => !['200', '429', '503', 'broken'].includes(outcome));
  expect(strange, said).to.deep.equal([]);
  return { kills: victims.length, reached, lost: requestCount - reached, outcomes };
}

/** Retries as a client behind a load balancer does. */
async function persistently(fleet: Fleet, token: WireTokenCreated, random: Random): Promise<number | null> {
  for (let tries = 1; ; tries++) {
    const status = await anyOf(fleet.up, random).call(token);
    if (status !== null || tries === MOST_TRIES) return status;
  }
}

async function killAndBegin(fleet: Fleet, victim: Member, random: Random): Promise<void> {
  const isBuriedByItself = random() < 0.5;
  await sleep(random() * KILLED_WITHIN_MS);
  await victim.kill();
  // Otherwise its units would stay leased for the rest of the run.
  if (isBuriedByItself) await fleet.silence();
  await victim.begin();
}

/** Waits until no instance holds undrawn units, and all counts are written. */
function settled(fleet: Fleet, token: WireTokenCreated): Promise<void> {
  return eventually('everything is given back', async () => (await fleet.counted(token.id)).leased === 0);
}

export function anyOf<T>(list: readonly T[], random: Random): T {
  const one = list[Math.floor(random() * list.length)];
  if (one === undefined) throw new RangeError('no instance is left');
  return one;
}
