import { expect } from 'chai';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { Several } from '../support/several.js';
import { Visitor } from './visitor.js';

const NAMES: Record<ServerKind, string> = { postgres: 'PostgreSQL', mysql: 'MariaDB' };

for (const kind of ['postgres', 'mysql'] as const) {
  describe(`a session of the Admin UI on several instances on ${NAMES[kind]}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let several: Several;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      several = await Several.start(server, { count: 2 });
    });
    after(async () => {
      await (several as Several | undefined)?.stop();
    });

    /** One browser, whatever instance its requests come to. */
    const at = (index: number, from?: Visitor) => {
      const visitor = new Visitor(several.at(index).managementUrl, { host: 'localhost' });
      for (const [name, kept] of from?.cookies ?? []) visitor.cookies.set(name, kept);
      visitor.formToken = from?.formToken ?? '';
      return visitor;
    };

    it('P05 goes on from one to another, and is dead on both at once after the log-out on either', async () => {
      const first = at(0);
      await first.logIn(MANAGEMENT_TOKEN);
      const second = at(1, first);
      expect((await second.get()).status).to.equal(200);
      // A form of a page of the one is good for the other, and so is what one hands over to the next page.
      const project = await several.at(0).createProject();
      const issued = await second.post('tokens/new', { project_id: project.id, duration: '1', unit: 'hours' });
      expect((await at(0, second).get(issued.to!)).html).to.match(/sk-wt-[0-9A-Za-z]{49}/);

      const copy = at(0, second);
      await second.post('logout');
      expect((await copy.get()).status).to.equal(303);
      expect((await at(1, copy).get()).status).to.equal(303);
    });
  });
}
