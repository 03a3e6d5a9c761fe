/** The jobs that operators open the terminal UI for, with the number of keys that each takes: 5,000 tokens in a dozen projects, and traffic. */
import { expect } from 'chai';
import type { WireTokenCreated } from '../../daemon/api/contract.js';
import { ManagementClient } from '../../daemon/api/client.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { makeTokens } from '../support/many-tokens.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

const TOKENS = 5_000;
const PROJECTS = ['web', ...Array.from({ length: 11 }, (_, nr) => `team-${nr + 1}`)];
const EVERY_MS = 100;
const WITHIN_MS = 20_000; // On a busy machine.

describe(`the jobs of operators, with ${TOKENS} tokens and traffic${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);
  let stage: TerminalFixture;
  let caller: WireTokenCreated;
  let traffic: NodeJS.Timeout | undefined;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    for (const name of PROJECTS) await stage.project(name);
    await stage.kill();
    await makeTokens(stage.database, TOKENS);
    await stage.begin();
    const client = new ManagementClient({
      server: stage.server,
      managementToken: MANAGEMENT_TOKEN,
      frontEnd: 'cli',
      user: 'ana@laptop',
      reason: 'leaked in a CI log',
      timeoutMs: 10_000,
      fetch,
    });
    const web = (await client.projects({ limit: '100' })).items.find(({ name }) => name === 'web');
    const issue = (name: string) => client.createToken({ project_id: web!.id, name, duration_hours: 24 });
    caller = await issue('failing-client');
    for (const name of ['lena', 'kim']) await client.updateToken((await issue(name)).id, { is_active: false });
    // Nobody listens where the upstream should be: each request fails.
    traffic = setInterval(() => {
      const headers = { authorization: `Bearer ${caller.token}` };
      fetch(`${stage.server}/v1/models`, { headers }).then(
        (response) => response.arrayBuffer(),
        () => undefined,
      );
    }, EVERY_MS);
  });
  after(async () => {
    clearInterval(traffic);
    if (!WITHOUT_TMUX) await stage.close();
  });

  /** Counts the keys of one job, from the overview. */
  class Job {
    keys = 0;
    readonly terminal: Terminal;
    constructor(terminal: Terminal) {
      this.terminal = terminal;
    }

    async press(...keys: string[]): Promise<this> {
      this.keys += keys.length;
      for (const key of keys) await this.terminal.press(key);
      return this;
    }

    /** The digit of a screen, as the bar of screens shows it. */
    async goTo(screen: string): Promise<this> {
      const [, digit = ''] = new RegExp(`(\\d) ${screen}`).exec(await this.terminal.screen()) ?? [];
      return this.press(digit);
    }
  }

  for (const [columns, rows] of [
    [120, 40],
    [80, 24],
  ] as const) {
    describe(`at ${columns}x${rows}`, () => {
      let terminal: Terminal;
      beforeEach(async () => {
        terminal = await stage.watch({ columns, rows, args: ['--screen', 'overview'] });
        await terminal.shows(/req [1-9]/, WITHIN_MS);
      });
      afterEach(async () => {
        await terminal.close();
      });

      it('see one failing request and why it failed: 4 keys, and it stays', async () => {
        const job = await new Job(terminal).goTo('Events');
        await terminal.shows(/failing/, WITHIN_MS);
        await job.press('e', 'Enter');
        expect(job.keys).to.be.at.most(4);
        const why = /why +.*(?:unreachable|ECONNREFUSED)/;
        // A small screen has no space for the ID.
        const first = /[0-9a-f]{8}-[0-9a-f]{4}/.exec(await terminal.shows(why, WITHIN_MS))?.[0] ?? '';
        if (columns >= 120) expect(first).not.to.equal('');
        await new Promise((resolve) => setTimeout(resolve, 10 * EVERY_MS));
        expect(await terminal.screen())
          .to.match(why)
          .and.to.contain(first);
      });

      if (columns >= 120) {
        it('who revoked a token, and why: 6 keys', async () => {
          const job = await new Job(terminal).goTo('Audit');
          await terminal.shows(/kim/, WITHIN_MS);
          await job.press('/', 'k', 'i', 'm', 'Enter');
          expect(job.keys).to.be.at.most(6);
          // Long texts are cut at 80 columns.
          await terminal.shows(/> .*token\.revoke.*ana@lapto.*kim.*leaked in a/, WITHIN_MS);
        });
      }

      it('issue a token again that is no longer valid, from its row: 2 keys', async () => {
        await new Job(terminal).goTo('Tokens');
        await terminal.type('/lena state:revoked');
        await terminal.press('Enter');
        await terminal.shows(/>.*lena.*revoked/, WITHIN_MS);
        const issued = async () => (await stage.audit('token.create')).length;
        const before = await issued();
        const job = await new Job(terminal).press('R');
        await terminal.shows(/Issue lena again/, WITHIN_MS);
        await job.press('Enter');
        expect(job.keys).to.be.at.most(2);
        await terminal.shows(/shown once/, WITHIN_MS);
        expect(await issued()).to.equal(before + 1);
      });
    });
  }
});
