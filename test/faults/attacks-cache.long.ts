/** Attacks on a daemon with the response cache and a heap of 256 MB. README.md has the figures. */
import { head } from '../support/raw.js';
import {
  attack,
  type AttackLimits,
  expectWithinLimits,
  type Hostility,
  startAttacked,
  targetOf,
} from './support/attack.js';
import type { ServedDaemon } from './support/served-daemon.js';

const CONNECTIONS = 1_000;
const HELD_MS = 8_000;

describe('Attacks on the response cache, with a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: ServedDaemon;
  beforeEach(async () => {
    served = await startAttacked({ env: { HTTP_CACHE_ENABLED: 'true', CLIENT_BODY_TIMEOUT: '60s' } });
  });
  afterEach(() => served.stop());

  const ATTACKS: Record<string, (secret: string) => Omit<Hostility, 'connections'>> = {
    // 4,000 keys of 30 KB in all. They are sent slowly, because the test is not about their CPU use.
    'requests with the largest permitted headers, each for another target': (secret) => ({
      pieces: Array.from({ length: 4 }, (_, i) => {
        const Accept = `{{n}}-${i}${'k'.repeat(30_000)}`;
        const fields = { 'Cache-Control': 'public', 'Content-Length': '2', Accept };
        return `${head('POST /v1/nothing', secret, fields)}{}`;
      }),
      pauseMs: 3_000,
      reads: true,
    }),
    'unfinished bodies that are part of the cache key': (secret) => ({
      pieces: [
        head('POST /v1/echo', secret, { 'Cache-Control': 'public', 'Transfer-Encoding': 'chunked' }),
        `10000\r\n${'x'.repeat(0x10000)}\r\n`,
      ],
      times: 15,
    }),
    'small unfinished bodies': (secret) => ({
      pieces: [head('POST /v1/echo', secret, { 'Content-Length': '65536' }) + 'x'.repeat(65_535)],
    }),
  };
  // README.md has the reason.
  const ALLOWED: Record<string, AttackLimits> = {
    'requests with the largest permitted headers, each for another target': { isP99Judged: false },
    'unfinished bodies that are part of the cache key': { mostMb: 144 },
  };
  for (const [what, hostility] of Object.entries(ATTACKS)) {
    it(`${CONNECTIONS} connections: ${what}`, async function () {
      const all = { connections: CONNECTIONS, ...hostility(served.secret) };
      expectWithinLimits(this.test?.title ?? '', await attack(targetOf(served), all, HELD_MS), ALLOWED[what]);
    });
  }
});
