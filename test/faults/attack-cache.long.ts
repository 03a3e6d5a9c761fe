/** Attacks on a daemon with the response cache, at a heap of 256 MB. The figures stand in README.md. */
import { expect } from 'chai';
import { head } from '../support/raw.js';
import { attack, type Damage, type Hostility, inWords, startAttacked } from './support/attack.js';
import type { Served } from './support/served.js';

const CONNECTIONS = 1_000;
const MOST_MB = 64;

describe('an attack on the response cache', function () {
  this.timeout(180_000);
  let served: Served;
  beforeEach(async () => {
    served = await startAttacked({ env: { HTTP_CACHE_ENABLED: 'true', CLIENT_BODY_TIMEOUT: '60s' } });
  });
  afterEach(() => served.stop());

  async function expectHeld(what: string, hostility: Hostility, forMs: number): Promise<Damage> {
    const damage = await attack(served, hostility, { forMs });
    process.stdout.write(`      ${what}: ${inWords(damage)}\n`);
    expect(damage.isAlive, 'the process lives').to.equal(true);
    expect(damage.grewMb, 'MB more').to.be.below(MOST_MB);
    expect(Object.keys(damage.during.statuses), 'what others are answered').to.deep.equal(['200']);
    return damage;
  }

  it('by requests whose header fields are as large as may be, each for something else (finding B4)', async () => {
    const fields = {
      Connection: 'close',
      'Cache-Control': 'public',
      'Content-Length': '2',
      Accept: `{{n}}${'k'.repeat(30_000)}`,
    };
    const request = `${head('POST /v1/nothing', served.secret, fields)}{}`;
    await expectHeld('B4', { connections: CONNECTIONS, pieces: [request], reads: true, returns: true }, 10_000);
  });

  it('by bodies that the cache is asked by, and that do not end (finding B5)', async () => {
    const fields = { 'Cache-Control': 'public', 'Transfer-Encoding': 'chunked' };
    const start = head('POST /v1/echo', served.secret, fields);
    const piece = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    await expectHeld('B5', { connections: CONNECTIONS, pieces: [start, piece], times: 15 }, 10_000);
  });

  it('by small bodies that do not end (finding B5)', async () => {
    const start = head('POST /v1/echo', served.secret, { 'Content-Length': '65536' }) + 'x'.repeat(65_535);
    await expectHeld('B5, small', { connections: CONNECTIONS, pieces: [start] }, 10_000);
  });
});
