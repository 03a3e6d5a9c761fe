import { expect } from 'chai';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { attack, type Damage, type Hostility, inWords, startAttacked } from './support/attack.js';
import type { Served } from './support/served.js';

const CONNECTIONS = 1_000;
const MOST_MB = 64;

/** Requests without a body, as many as one read of the daemon holds. */
const pipelined = (request: string): Pick<Hostility, 'pieces' | 'times'> => ({
  pieces: [request],
  times: Math.ceil((256 * 1024) / request.length),
});

const UNFINISHED = `GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\n${'X-Filler: 0123456789abcdef\r\n'.repeat(1_500)}`;
// Two strings for seven bytes: the most that a head can make of its bytes.
const MANY_FIELDS = `GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\n${'aa:bb\r\n'.repeat(6_000)}`;

describe('Attacks on connections, at a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: Served;
  afterEach(() => served.stop());

  const bearer = (secret: string) => head('GET /v1/models', secret);

  const ATTACKS: Record<string, (served: Served) => Hostility> = {
    'pipelined requests without a token, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined requests with a token, answers unread (finding B1)': ({ secret }) => ({
      connections: CONNECTIONS,
      ...pipelined(bearer(secret)),
    }),
    'pipelined probes, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /health HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined calls of management without a token, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /manage/tokens HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined calls of management with the token, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined(head('GET /manage/tokens', MANAGEMENT_TOKEN)),
    }),
    'pipelined scrapes of metrics, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined pages of the Admin UI, answers unread (finding B1)': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /admin/login HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'unfinished heads of 43 KB (finding B2)': () => ({ connections: CONNECTIONS, pieces: [UNFINISHED] }),
    'unfinished heads of 43 KB that come again (finding B2)': () => ({
      connections: CONNECTIONS,
      pieces: [UNFINISHED],
      returns: true,
    }),
    'unfinished heads of 6,000 fields (finding B2)': () => ({ connections: CONNECTIONS, pieces: [MANY_FIELDS] }),
  };
  for (const [what, hostility] of Object.entries(ATTACKS)) {
    it(`${CONNECTIONS} connections: ${what}`, async function () {
      served = await startAttacked({ env: { ADMIN_UI_ENABLED: 'true' } });
      const damage = await attack(served, hostility(served));
      tell(this.test?.title ?? '', damage);
      expectBearable(damage);
      expect(damage.grewMb, 'MB more').to.be.below(MOST_MB);
    });
  }

  it('9,000 connections: unfinished heads of 43 KB (finding B2)', async function () {
    served = await startAttacked();
    const damage = await attack(served, { connections: 9_000, pieces: [UNFINISHED] }, { forMs: 12_000 });
    tell(this.test?.title ?? '', damage);
    expectBearable(damage);
  });

  /**
   * The times are printed and not judged: attackers, polite client and provider share two processors with each other, so that they show how
   * busy the machine is more than what an attack costs.
   */
  function expectBearable({ isAlive, during }: Damage): void {
    expect(isAlive, 'the daemon lives').to.equal(true);
    expect(Object.keys(during.statuses), 'what the polite client is answered').to.deep.equal(['200']);
  }
});

function tell(title: string, damage: Damage): void {
  console.log(`      ${title}: ${inWords(damage)}`);
}
