/** An instance that is killed during an exchange: before the commit the JWT is as good as new, and after it is used up. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { WireProject, WireToken } from '../../daemon/api/contract.js';
import { UPSTREAM_KEY } from '../support/daemon.js';
import { DatabaseServer, WITHOUT } from '../support/database-servers.js';
import { eventually } from '../support/eventually.js';
import { exchange, trustTerms } from '../support/exchanges.js';
import { Fleet } from '../support/fleet.js';
import { StandInIssuer } from '../support/jwt-issuer.js';

describe(`an instance that is killed during an exchange${WITHOUT.postgres}`, function () {
  this.timeout(120_000);
  let server: DatabaseServer;
  let fleet: Fleet;
  let issuer: StandInIssuer;
  let jwt: string;

  before(async function () {
    if (WITHOUT.postgres) this.skip();
    server = await DatabaseServer.start('postgres');
    fleet = await Fleet.start(server);
    issuer = await StandInIssuer.start();
    const project = await fleet.at(0).manage('POST', '/manage/projects', { name: 'killed', api_key: UPSTREAM_KEY });
    const { id } = project.body as WireProject;
    const { status } = await fleet.at(0).manage('POST', '/manage/trusts', trustTerms(issuer.url, id));
    expect(status).to.equal(201);
  });
  after(async () => {
    await issuer.stop();
    await fleet.stop();
    await server.remove();
  });
  beforeEach(async () => {
    jwt = await issuer.jwt({ repository: 'acme/web', run_id: '1' }, Date.now());
  });

  const tokens = async () => ((await fleet.at(1).manage('GET', '/manage/tokens')).body as WireToken[]).length;

  it('before the commit has not used the JWT up, and made no token', async () => {
    const before = await tokens();
    // The last step of the transaction waits for the next number.
    const release = await fleet.lock('SELECT seq FROM change_seq WHERE id = 1 FOR UPDATE');
    const cut = exchange(fleet.at(0), jwt).then(
      () => 'answered',
      () => 'cut',
    );
    await eventually('the exchange waits for the lock', async () => {
      const waiting = await fleet.select(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
      );
      return waiting.length > 0;
    });
    await fleet.at(0).kill();
    expect(await cut).to.equal('cut');
    await release();
    expect(await tokens()).to.equal(before);
    expect((await exchange(fleet.at(1), jwt)).status).to.equal(200);
    expect(await tokens()).to.equal(before + 1);
    await fleet.at(0).begin();
  });

  it('between the commit and the answer has used the JWT up, at all instances and after a restart', async () => {
    const before = await tokens();
    const { hostname, port } = new URL(fleet.at(0).url);
    // Kills the instance at the first byte of its answer, which the client never gets.
    const relay = createServer((client) => {
      const daemon = connect(Number(port), hostname);
      client.on('error', () => undefined).pipe(daemon);
      daemon
        .on('error', () => undefined)
        .once('data', () => {
          fleet.at(0).signal('SIGKILL');
          client.destroy();
        });
    }).listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
    const cut = await exchange({ url }, jwt).then(
      () => 'answered',
      () => 'cut',
    );
    expect(cut).to.equal('cut');
    await fleet.at(0).kill();
    relay.close();
    expect(await tokens()).to.equal(before + 1);
    expect((await exchange(fleet.at(1), jwt)).body.code).to.equal('token_used');
    await fleet.at(0).begin();
    expect((await exchange(fleet.at(0), jwt)).body.code).to.equal('token_used');
    expect(await tokens()).to.equal(before + 1);
  });
});
