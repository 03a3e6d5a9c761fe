/** Attacks on what is read of the contents of requests, at a heap of 256 MB. The figures stand in README.md. */
import { head } from '../support/raw.js';
import { attack, expectBearable, startAttacked, targetOf } from './support/attack.js';
import type { Served } from './support/served.js';

const LARGEST_HELD = 64 * 1024;

describe('Attacks on what is read of requests, at a heap of 256 MB', function () {
  this.timeout(180_000);
  let served: Served;
  beforeEach(async () => {
    served = await startAttacked();
  });
  afterEach(() => served.stop());

  const line = '\r\ncontent-disposition:;name="model"';
  const form = `--b${line.repeat(Math.floor((LARGEST_HELD - 100) / line.length))}`;

  for (const connections of [400, 1_000]) {
    it(`${connections} connections: forms that are made for it, with a token of one use (finding B3)`, async function () {
      const { id } = await served.management.createProject({ name: 'attacked', api_key: 'upstream-of-the-attacked' });
      const { token } = await served.management.createToken({ project_id: id, max_requests: 1 });
      const fields = { 'Content-Type': 'multipart/form-data; boundary=b', 'Content-Length': String(form.length) };
      const pieces = [head('POST /v1/echo', token, fields) + form];
      const damage = await attack(targetOf(served), { connections, pieces, reads: true }, 8_000);
      expectBearable(this.test?.title ?? '', damage);
    });
  }
});
