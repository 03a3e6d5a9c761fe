/** Attacks on a daemon with the response cache, at a heap of 256 MB. The figures stand in README.md. */
import { head } from '../support/raw.js';
import { attack, type Bearable, expectBearable, type Hostility, startAttacked, targetOf } from './support/attack.js';
import type { Served } from './support/served.js';

const CONNECTIONS = 1_000;
const HELD_MS = 8_000;

describe('Attacks on the response cache, at a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: Served;
  beforeEach(async () => {
    served = await startAttacked({ env: { HTTP_CACHE_ENABLED: 'true', CLIENT_BODY_TIMEOUT: '60s' } });
  });
  afterEach(() => served.stop());

  const ATTACKS: Record<string, (secret: string) => Omit<Hostility, 'connections'>> = {
    // In all 4,000 keys of 30 KB. Slowly: what they take of the processor is not what is looked at.
    'requests whose header fields are as large as may be, each for something else (finding B4)': (secret) => ({
      pieces: Array.from({ length: 4 }, (_, i) => {
        const Accept = `{{n}}-${i}${'k'.repeat(30_000)}`;
        const fields = { 'Cache-Control': 'public', 'Content-Length': '2', Accept };
        return `${head('POST /v1/nothing', secret, fields)}{}`;
      }),
      pauseMs: 3_000,
      reads: true,
    }),
    'bodies that the cache is asked by, and that do not end (finding B5)': (secret) => ({
      pieces: [
        head('POST /v1/echo', secret, { 'Cache-Control': 'public', 'Transfer-Encoding': 'chunked' }),
        `10000\r\n${'x'.repeat(0x10000)}\r\n`,
      ],
      times: 15,
    }),
    'small bodies that do not end (finding B5)': (secret) => ({
      pieces: [head('POST /v1/echo', secret, { 'Content-Length': '65536' }) + 'x'.repeat(65_535)],
    }),
  };
  // README.md says why.
  const ALLOWED: Record<string, Bearable> = {
    'requests whose header fields are as large as may be, each for something else (finding B4)': { isP99Judged: false },
    'bodies that the cache is asked by, and that do not end (finding B5)': { mostMb: 144 },
  };
  for (const [what, hostility] of Object.entries(ATTACKS)) {
    it(`${CONNECTIONS} connections: ${what}`, async function () {
      const all = { connections: CONNECTIONS, ...hostility(served.secret) };
      expectBearable(this.test?.title ?? '', await attack(targetOf(served), all, HELD_MS), ALLOWED[what]);
    });
  }
});
