import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { head } from '../../support/raw.js';
import { expectRefusal, MALFORMED } from '../../support/refusals.js';
import { ProxyFixture } from '../../support/proxy-fixture.js';

// The first step of a request; the others are in proxy.test.ts. The refused shapes are in faults/ (A01 to A37).
describe('a request on /v1: 1 shape', () => {
  const scene = ProxyFixture.forSuite();

  it('answers OPTIONS with 204, with or without a secret, and neither forwards nor counts it', async () => {
    expect((await scene.send(head('OPTIONS /v1/models', null))).status).to.equal(204);
    expect((await scene.send(head('OPTIONS /v1/models', scene.secret))).status).to.equal(204);
    await scene.expectSpent(0);
  });

  it('uses a valid request ID of the client, and replaces any other', async () => {
    const idFor = async (given: string) => (await scene.get(null, { 'X-Request-ID': given })).json.request_id;
    expect(await idFor('my-id_1')).to.equal('my-id_1');
    for (const given of ['', 'a'.repeat(65), 'a b', 'a\x1b[2J', '<id>']) {
      expect(await idFor(given), JSON.stringify(given)).to.match(/^[0-9a-f]{32}$/);
    }
  });

  it('is checked before the credential', async () => {
    expectRefusal(await scene.get('not-a-secret', { Host: [] }), MALFORMED);
    await eventually('the end is known', () => scene.daemon.ended[0]?.outcome === 'refused');
  });
});
