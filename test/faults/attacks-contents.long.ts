/** Attacks on the parsing of request bodies, with a heap of 256 MB. README.md has the figures. */
import { head } from '../support/raw.js';
import { attack, expectWithinLimits, startAttacked, targetOf } from './support/attack.js';
import type { ServedDaemon } from './support/served-daemon.js';

const LARGEST_HELD = 64 * 1024;

describe('Attacks on the parsing of request bodies, with a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: ServedDaemon;
  beforeEach(async () => {
    served = await startAttacked();
  });
  afterEach(() => served.stop());

  const line = '\r\ncontent-disposition:;name="model"';
  const form = `--b${line.repeat(Math.floor((LARGEST_HELD - 100) / line.length))}`;

  for (const connections of [400, 1_000]) {
    it(`${connections} connections: crafted forms, and a token with a cap of 1`, async function () {
      const { id } = await served.management.createProject({ name: 'attacked', api_key: 'upstream-of-the-attacked' });
      const { token } = await served.management.createToken({ project_id: id, max_requests: 1 });
      const fields = { 'Content-Type': 'multipart/form-data; boundary=b', 'Content-Length': String(form.length) };
      const pieces = [head('POST /v1/echo', token, fields) + form];
      const damage = await attack(targetOf(served), { connections, pieces, reads: true }, 8_000);
      expectWithinLimits(this.test?.title ?? '', damage);
    });
  }
});
