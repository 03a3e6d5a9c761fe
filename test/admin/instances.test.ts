import { expect } from 'chai';
import { DatabaseServer, type ServerKind, WITHOUT } from '../support/database-servers.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { DaemonGroup } from '../support/daemon-group.js';
import { TestBrowser } from './test-browser.js';

const NAMES: Record<ServerKind, string> = { postgres: 'PostgreSQL', mysql: 'MariaDB' };

for (const kind of ['postgres', 'mysql'] as const) {
  describe(`a session of the Admin UI on several instances on ${NAMES[kind]}${WITHOUT[kind]}`, function () {
    this.timeout(60_000);
    let server: DatabaseServer;
    let several: DaemonGroup;

    before(async function () {
      if (WITHOUT[kind]) this.skip();
      server = await DatabaseServer.shared(kind);
      several = await DaemonGroup.start(server, { count: 2 });
    });
    after(async () => {
      await (several as DaemonGroup | undefined)?.stop();
    });

    /** The same browser, connected to another instance. */
    const at = (index: number, from: TestBrowser) => from.copy({ url: several.at(index).managementUrl });

    it('P05 is valid on both, and ends on both at once after the logout on one', async () => {
      const first = new TestBrowser(several.at(0).managementUrl, { host: 'localhost' });
      await first.logIn(MANAGEMENT_TOKEN);
      const second = at(1, first);
      expect((await second.get()).status).to.equal(200);
      // A form from one instance is valid on the other, and so is a secret for the next page.
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
