/** The jobs that operators open the terminal UI for, with the number of keys that each takes: 5,000 tokens in a dozen projects, and traffic. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManagementClient } from '../../daemon/api/client.js';
import { MANAGEMENT_TOKEN } from '../support/daemon.js';
import { completion, json } from '../../daemon/demo/responses.js';
import { openStores } from '../../daemon/store/open.js';
import { TestClock } from '../support/clock.js';
import { makeTokens } from '../support/many-tokens.js';
import { type Provider, startProvider } from '../support/provider.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

const TOKENS = 5_000;
const PROJECTS = ['web', ...Array.from({ length: 11 }, (_, nr) => `team-${nr + 1}`)];
const EVERY_MS = 100;
const BROKEN_MODEL = 'gpt-broken';
/** In turn: the model that is requested most is not the one with the most tokens. */
const MODELS = [BROKEN_MODEL, 'gpt-mini', 'gpt-mini', 'gpt-large'];
/** US dollars per million model tokens. The broken model has no price. */
const PRICES = {
  prices: [
    { model: 'gpt-large', input: '10', output: '30' },
    { model: 'gpt-mini', input: '1', output: '2' },
  ],
};
const NEW_KEY = 'sk-new-provider-key-of-the-jobs';
/** A narrow bar of screens shows the digits only. */
const DIGITS = { Overview: '1', Tokens: '2', Projects: '3', Audit: '4', Events: '6', Top: '7' } as const;
const WITHIN_MS = 20_000; // On a busy machine.

describe(`the jobs of operators, with ${TOKENS} tokens and traffic${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);
  let stage: TerminalFixture;
  let provider: Provider;
  let traffic: NodeJS.Timeout | undefined;
  let client: ManagementClient;
  let folder: string;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    provider = await startProvider();
    provider.answer = (_req, res, { body }) => {
      provider.received.length = 0;
      const { model = '' } = JSON.parse(body.toString() || '{}') as { model?: string };
      if (model === BROKEN_MODEL) res.socket?.destroy();
      else json(res, 200, completion(model, 'word', { prompt: 10, completion: model === 'gpt-large' ? 500 : 2 }));
    };
    folder = mkdtempSync(join(tmpdir(), 'llmp-jobs-'));
    const prices = join(folder, 'prices.json');
    writeFileSync(prices, JSON.stringify(PRICES));
    stage = await TerminalFixture.open({ UPSTREAM_BASE_URL: provider.url, PRICES_FILE: prices });
    for (const name of PROJECTS) await stage.project(name);
    await stage.kill();
    await makeTokens(stage.database, TOKENS);
    await leaveUnused(stage.database);
    await stage.begin();
    client = new ManagementClient({
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
    const failing = await issue('failing-client');
    const working = await issue('working-client');
    await client.createToken({ project_id: web!.id, name: 'soon-over', duration_hours: 1 });
    for (const name of ['lena', 'kim']) await client.updateToken((await issue(name)).id, { is_active: false });
    let sent = 0;
    traffic = setInterval(() => {
      const model = MODELS[sent % MODELS.length] ?? BROKEN_MODEL;
      const { token } = model === BROKEN_MODEL ? failing : working;
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: String((sent += 1)) }] });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      fetch(`${stage.server}/v1/chat/completions`, { method: 'POST', headers, body }).then(
        (response) => response.arrayBuffer(),
        () => undefined,
      );
    }, EVERY_MS);
  });
  after(async () => {
    clearInterval(traffic);
    if (WITHOUT_TMUX) return;
    await stage.close();
    await provider.stop();
    rmSync(folder, { recursive: true });
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

    async goTo(screen: keyof typeof DIGITS): Promise<this> {
      return this.press(DIGITS[screen]);
    }
  }

  for (const [columns, rows] of [
    [200, 60],
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
        const why = /why +.*provider closed/;
        // A small screen has no space for the ID.
        const shown = columns >= 120 ? /why +.*provider closed[^]*[0-9a-f]{8}-[0-9a-f]{4}/ : why;
        const first = /[0-9a-f]{8}-[0-9a-f]{4}/.exec(await terminal.shows(shown, WITHIN_MS))?.[0] ?? '';
        await new Promise((resolve) => setTimeout(resolve, 10 * EVERY_MS));
        expect(await terminal.screen())
          .to.match(why)
          .and.to.contain(first);
      });

      it('what is wrong right now, and why: no key on the overview, and what it names opens with 1', async () => {
        await terminal.shows(/Problems [1-9][^]*project web +provider [^]*of [\d,]+ requests[^]*Traffic/, WITHIN_MS);
        const job = await new Job(terminal).press('Enter');
        expect(job.keys).to.be.at.most(4);
        await terminal.shows(/overview › web/, WITHIN_MS);
      });

      it('which token made the most failures in the last hour: 2 keys', async () => {
        const job = await new Job(terminal).goTo('Top');
        await terminal.shows(/Tokens, last hour[^]*> *failing-client/, WITHIN_MS);
        await job.press('Enter');
        expect(job.keys).to.be.at.most(2);
        await terminal.shows(/top › failing-client/, WITHIN_MS);
      });

      it('which model uses the most tokens, by project: 3 keys', async () => {
        const job = await new Job(terminal).goTo('Top');
        await job.press('m');
        expect(job.keys).to.be.at.most(3);
        await terminal.shows(/Models, last hour[^]*> *gpt-large +web[^]*gpt-mini +web/, WITHIN_MS);
      });

      it('which project cost most this week, and which model in it: no key on the overview', async () => {
        const most = String.raw`web +\$[\d.,]+\+?`;
        const shown =
          columns < 90
            ? new RegExp(`cost, 7 days \\$[\\d.,]+\\+?: ${most}, gpt-large \\$`)
            : new RegExp(`Cost, last 7 days: \\$[\\d.,]+\\+?[^]*${most} +most gpt-large \\$`);
        await terminal.shows(shown, 2 * WITHIN_MS);
        const job = await new Job(terminal).goTo('Top');
        await job.press('o', '$');
        expect(job.keys, 'today').to.be.at.most(4);
        await terminal.shows(/Projects, last hour[^]*COST ▼[^]*> *web .*\$/, WITHIN_MS);
      });

      it('cap somebody at 20 dollars, from the row: 4 keys with the sum, and what happens then: 1 key', async () => {
        await new Job(terminal).goTo('Tokens');
        await terminal.type('/working-client');
        await terminal.press('Enter');
        await terminal.shows(/> .*working-client/, WITHIN_MS);
        const job = await new Job(terminal).press('$');
        await terminal.shows(/What token working-client may spend/, WITHIN_MS);
        await job.press('2', '0', 'C-s');
        expect(job.keys).to.be.at.most(4);
        await terminal.shows(/Changed what working-client may spend/, WITHIN_MS);
        const [token] = (await client.tokens({ q: 'working-client' })).items;
        expect(token?.budget).to.deep.equal({ usd: '20.00', period: 'none', mode: 'soft' });
        const question = await new Job(terminal).press('$');
        expect(question.keys).to.be.at.most(4);
        await terminal.shows(/At the limit, new requests are refused with 402/, WITHIN_MS);
        await terminal.press('Escape', 'Enter');
        await terminal.shows(/budget +\S* +\$[\d.]+\+? of \$20 \(\d+%\), \$[\d.]+ left, soft/, WITHIN_MS);
        await client.updateToken(token!.id, { budget: null });
        await terminal.shows(/budget +none/, WITHIN_MS);
      });

      it('who revoked a token, and why: 6 keys', async () => {
        const job = await new Job(terminal).goTo('Audit');
        await terminal.shows(/token\.create/, WITHIN_MS);
        await job.press('/', 'k', 'i', 'm', 'Enter');
        expect(job.keys).to.be.at.most(6);
        // Long texts are cut at 80 columns.
        await terminal.shows(/> .*token\.revoke.*ana@l.*kim.*leaked/, WITHIN_MS);
      });

      it('which active tokens of a project expire within two hours, from the list of tokens: 12 keys', async () => {
        await new Job(terminal).goTo('Tokens');
        await terminal.shows(/● active/, WITHIN_MS);
        const job = await new Job(terminal).press('/', 'p', 'Tab', 'w', 'Tab', 'e', 'x', 'Tab');
        await terminal.type('<2h');
        job.keys += '<2h'.length;
        await terminal.shows(/project:web expires:<2h/, WITHIN_MS);
        await job.press('Enter');
        await terminal.shows(/^(?![^]*(?:expired|failing-client))[^]*soon-over/, WITHIN_MS);
        expect(job.keys).to.be.at.most(12);
      });

      it('revoke the tokens that are unused for 30 days, with a saved view: 8 keys', async () => {
        await new Job(terminal).goTo('Tokens');
        await terminal.type('/idle:>30d');
        await terminal.press('Enter');
        await terminal.shows(/ 10\/[\d,]+(?: \d+ marked)? *$/m, WITHIN_MS);
        await terminal.type(':save idle');
        await terminal.press('Enter');
        await terminal.shows(/8 idle|(?:Saved|Replaced) the view idle/, WITHIN_MS);
        await new Job(terminal).goTo('Overview');
        const job = await new Job(terminal).press('8');
        await terminal.shows(/ 10\/[\d,]+(?: \d+ marked)? *$/m, WITHIN_MS);
        await job.press('C-a');
        await terminal.shows(/marked \d|\d marked/, WITHIN_MS);
        await job.press('x');
        await terminal.shows(/Revoke \d+ tokens? in /, WITHIN_MS);
        await job.press('Tab', 'Enter');
        expect(job.keys).to.be.at.most(8);
        await terminal.shows(/Revoked \d+/, WITHIN_MS);
        await terminal.press('u');
        await terminal.shows(/Reactivated \d+/, WITHIN_MS);
      });

      it('undo what was done to 500 tokens, except what somebody else has changed since: 4 keys', async () => {
        const { items } = await client.tokens({ limit: '500', state: 'active', sort: 'name' });
        const revoke = async (tokens: typeof items) => {
          const batch = client.inBatch(randomUUID());
          for (let from = 0; from < tokens.length; from += 20) {
            const some = tokens.slice(from, from + 20);
            await Promise.all(some.map(({ id }) => batch.updateToken(id, { is_active: false })));
          }
        };
        await revoke(items);
        await revoke(items.slice(0, 2));
        const job = await new Job(terminal).goTo('Audit');
        await terminal.shows(/500 changes[^]*> .*(?:2 changes|×2)/, WITHIN_MS);
        await job.press('k', 'u');
        await terminal.shows(/Undo: 500 × token\.revoke by/, WITHIN_MS);
        await job.press('Enter');
        expect(job.keys).to.be.at.most(4);
        const said = /Undid 498 of 500 changes\. 2 were changed again since and stay as they are\./;
        await terminal.shows(said, 3 * WITHIN_MS); // Each change back is a transaction.
        const states = await Promise.all(items.slice(0, 4).map(async ({ id }) => (await client.token(id)).is_active));
        expect(states).to.deep.equal([false, false, true, true]);
        // Its members are in the details.
        await terminal.press('Enter');
        await terminal.shows(/action +token\.revoke ×500[^]*● token\.revoke +CI job/, WITHIN_MS);
      });

      it("change a project's key, which the provider has accepted, from its row", async () => {
        await new Job(terminal).goTo('Projects');
        await terminal.shows(/K set key/, WITHIN_MS);
        await terminal.press('K');
        await terminal.shows(/[Kk]ey/, WITHIN_MS);
        await terminal.typeSecret(NEW_KEY);
        await terminal.press('Enter', 'Enter', 'Enter');
        await terminal.shows(/The provider accepted the key/, WITHIN_MS);
      });

      it('find a token by what its holder reads out of its secret: 4 keys beside the text', async () => {
        const { obfuscated } = await stage.tokenNamed('failing-client');
        const job = await new Job(terminal).goTo('Tokens');
        await terminal.shows(/● active/, WITHIN_MS);
        await job.press('/');
        await terminal.type(obfuscated.replace('…', '...').toLowerCase());
        await job.press('Enter');
        expect(job.keys).to.be.at.most(4);
        await terminal.shows(/tokens › failing-client/, WITHIN_MS);
      });

      it('write all tokens of a filter to a file, whatever is loaded: 2 keys beside the command', async () => {
        const name = `ci-${columns}.csv`;
        await new Job(terminal).goTo('Tokens');
        await terminal.type('/CI job');
        await terminal.press('Enter');
        await terminal.shows(/> .*CI job/, WITHIN_MS);
        const job = await new Job(terminal).press(':');
        await terminal.type(`export ${name}`);
        await job.press('Enter');
        expect(job.keys).to.equal(2);
        const [, exported = ''] = /Exported ([\d,]+) tokens to/.exec(
          await terminal.shows(/Exported [\d,]+ tokens to ci-/, WITHIN_MS),
        ) ?? [''];
        const rows = readFileSync(join(stage.folder, name), 'utf8').trimEnd().split('\r\n');
        expect(rows.length - 1)
          .to.equal(Number(exported.replaceAll(',', '')))
          .and.to.be.above(1_000);
        await terminal.type(`:export ${name}`);
        await terminal.press('Enter');
        await terminal.shows(/The file already exists/, WITHIN_MS);
        await terminal.press('Enter');
      });

      it('issue several tokens again, with their secrets in a file: 3 keys', async () => {
        await new Job(terminal).goTo('Tokens');
        await terminal.type('/idle:>30d');
        await terminal.press('Enter');
        await terminal.shows(/ 10\/[\d,]+(?: \d+ marked)? *$/m, WITHIN_MS);
        const job = await new Job(terminal).press('C-a');
        await terminal.shows(/marked 10|10 marked/, WITHIN_MS);
        await job.press('R');
        await terminal.shows(/Issue 10 tokens again/, WITHIN_MS);
        await job.press('Enter');
        expect(job.keys).to.equal(3);
        const shown = await terminal.shows(/Secrets of 10 tokens/, WITHIN_MS);
        expect(shown).not.to.match(/sk-wt-\w{5}/);
        const file = readdirSync(stage.folder).find((name) => /^secrets-.*csv$/.test(name)) ?? '';
        const path = join(stage.folder, file);
        expect(statSync(path).mode & 0o777).to.equal(0o600);
        expect(readFileSync(path, 'utf8').match(/sk-wt-\w{49}/g)).to.have.length(10);
        rmSync(path);
      });

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

/** Tokens that nobody has used for 40 days, issued before that. */
async function leaveUnused(path: string): Promise<void> {
  const stores = await openStores(
    { database: { driver: 'sqlite', path }, encryptionKey: undefined },
    { clock: new TestClock() },
  );
  await stores.database.transact(async (tx) => {
    const change = 'last_used_at = last_used_at - $age, created_at = created_at - $age - $age';
    await tx.execute(`UPDATE tokens SET ${change} WHERE name LIKE 'CI job 100_'`, { age: 40 * 86_400_000 });
  });
  await stores.close();
}
