import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { head } from '../support/raw.js';
import { attack, expectWithinLimits, type Hostility, startAttacked, targetOf } from './support/attack.js';
import type { ServedDaemon } from './support/served-daemon.js';

const CONNECTIONS = 1_000;
const HELD_MS = 6_000;

/** Requests without a body, as many as fit in one read of the daemon. */
const pipelined = (request: string): Pick<Hostility, 'pieces' | 'times'> => ({
  pieces: [request],
  times: Math.ceil((256 * 1024) / request.length),
});

const UNFINISHED = `GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\n${'X-Filler: 0123456789abcdef\r\n'.repeat(1_500)}`;
// Two strings per seven bytes: the most strings that the bytes of a head can become.
const MANY_FIELDS = `GET /v1/models HTTP/1.1\r\nHost: llmp.test\r\n${'aa:bb\r\n'.repeat(6_000)}`;

describe('Attacks on connections, with a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: ServedDaemon;
  afterEach(() => served.stop());

  const bearer = (secret: string) => head('GET /v1/models', secret);

  const ATTACKS: Record<string, (served: ServedDaemon) => Hostility> = {
    'pipelined requests without a token, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined requests with a token, responses unread': ({ secret }) => ({
      connections: CONNECTIONS,
      ...pipelined(bearer(secret)),
    }),
    'pipelined probes, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /health HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined management requests without a token, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /manage/tokens HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined management requests with the token, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined(head('GET /manage/tokens', MANAGEMENT_TOKEN)),
    }),
    'pipelined requests for metrics, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'pipelined requests for pages of the Admin UI, responses unread': () => ({
      connections: CONNECTIONS,
      ...pipelined('GET /admin/login HTTP/1.1\r\nHost: a\r\n\r\n'),
    }),
    'unfinished heads of 43 KB': () => ({ connections: CONNECTIONS, pieces: [UNFINISHED] }),
    'unfinished heads of 43 KB, each client connects again': () => ({
      connections: CONNECTIONS,
      pieces: [UNFINISHED],
      returns: true,
    }),
    'unfinished heads of 6,000 fields': () => ({ connections: CONNECTIONS, pieces: [MANY_FIELDS] }),
  };
  for (const [what, hostility] of Object.entries(ATTACKS)) {
    it(`${CONNECTIONS} connections: ${what}`, async function () {
      served = await startAttacked({ env: { ADMIN_UI_ENABLED: 'true' } });
      expectWithinLimits(this.test?.title ?? '', await attack(targetOf(served), hostility(served), HELD_MS));
    });
  }

  for (const what of ['pipelined management requests', 'unfinished heads']) {
    it(`${CONNECTIONS} connections to MANAGEMENT_LISTEN_ADDR: ${what}`, async function () {
      served = await startAttacked({ env: { MANAGEMENT_LISTEN_ADDR: '127.0.0.1:0' } });
      const url = served.managementUrl;
      const pieces =
        what === 'unfinished heads' ? { pieces: [UNFINISHED] } : pipelined(head('GET /manage/tokens', null));
      const hostility = { connections: CONNECTIONS, ...pieces };
      expectWithinLimits(this.test?.title ?? '', await attack(targetOf(served, url), hostility, HELD_MS));
    });
  }

  it('9,000 connections: unfinished heads of 43 KB', async function () {
    served = await startAttacked();
    const hostility = { connections: 9_000, pieces: [UNFINISHED] };
    expectWithinLimits(this.test?.title ?? '', await attack(targetOf(served), hostility, HELD_MS));
  });
});
