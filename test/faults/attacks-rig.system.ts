/** The programs that attack, with an attack so small that it hurts nobody: what they report must be true. */
import { expect } from 'chai';
import { whyNoNamespace } from './support/attacks/namespace.js';
import { rowOf, TABLE_HEAD } from './support/attacks/report.js';
import { resultOf } from './support/attacks/run.js';
import { phaseOf } from './support/attacks/scene.js';

const MINUTE_MS = 60_000;

describe('The programs that attack a daemon', function () {
  this.timeout(2 * MINUTE_MS);

  it('time the requests of a phase by when they were due', () => {
    const requests = Array.from({ length: 100 }, (_, i) => ({ atMs: i * 10, tookMs: i, status: i < 98 ? 200 : 0 }));
    expect(phaseOf(requests, 0, 1_000)).to.deep.equal({
      p50Ms: 50,
      p99Ms: 99,
      requests: 100,
      statuses: { 0: 2, 200: 98 },
    });
    expect(phaseOf(requests, 500, 510)).to.include({ p50Ms: 50, requests: 1 });
  });

  it('report what an upload at a limited rate did, and what another project noticed', async () => {
    const result = await resultOf('--attack A1 --variant plain --connections 2 --token --rate 1 --seconds 2 --alone 1');
    const { before, during, after, attackers, uses } = result;
    for (const phase of [before, during, after]) expect(phase.statuses).to.deep.equal({ 200: phase.requests });
    expect(during.requests).to.be.at.least(80);
    expect(attackers).to.deep.include({ opened: 2, held: 2, ended: {} });
    expect(attackers.sentBytes).to.be.within(1e6, 10e6);
    expect(uses.attackers).to.deep.equal({ forwarded: 2, counted: 2, reported: 2 });
    expect(uses.steady.forwarded).to.be.at.least(175);
    expect(uses.steady).to.deep.include({ counted: uses.steady.forwarded, reported: uses.steady.forwarded });
    expect(result).to.deep.include({ died: null, workersLost: 0 });
    expect(result.rssPeakMb).to.be.at.least(result.rssBeforeMb);
    expect(result.heapPeakMb).to.be.within(10, 256);
    const columns = (line: string) => line.split(' | ').length;
    expect(columns(rowOf('a title', result))).to.equal(columns(TABLE_HEAD.split('\n')[0] ?? ''));
  });

  it('report answers, upgrades, and strangers that come back', async () => {
    const answered = await resultOf('--attack A4 --answers 3 --connections 2 --seconds 5 --alone 1');
    expect(answered.attackers).to.deep.include({ statuses: { 200: 3 }, ended: { left: 2 }, held: 0 });
    expect(answered.uses.attackers).to.deep.equal({ forwarded: 3, counted: 3, reported: 3 });
    const upgraded = await resultOf('--attack A6 --variant pings --connections 1 --rate 0.01 --seconds 3 --alone 1');
    expect(upgraded.attackers).to.deep.include({ statuses: { 101: 1 }, held: 1 });
    expect(upgraded.attackers.receivedBytes).to.be.within(500, 50_000);
    const strangers = await resultOf('--attack A1 --variant plain --connections 1 --rate 1 --seconds 2 --alone 1');
    expect(Object.keys(strangers.attackers.statuses)).to.deep.equal(['401']);
    expect(strangers.attackers.opened).to.be.at.least(2);
    expect(strangers.uses.attackers).to.deep.equal({ forwarded: 0, counted: 0, reported: 0 });
  });

  it('run in a namespace in which the kernel buffers next to nothing', async function () {
    const reason = whyNoNamespace();
    if (reason !== null) {
      console.log(`      skipped: ${reason}`);
      this.skip();
    }
    const args = '--attack A2 --variant plain --connections 1 --token --seconds 1 --alone 1';
    const [small, usual] = [await resultOf(`${args} --small-buffers`), await resultOf(args)];
    expect(small.attackers.sentBytes).to.be.below(usual.attackers.sentBytes / 4);
  });
});
