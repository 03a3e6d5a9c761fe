/** The whole program with 100,000 tokens: it shows the data of the API, not just the loaded rows. */
import { expect } from 'chai';
import type { WireToken } from '../../daemon/api/contract.js';
import { makeTokens } from '../support/many-tokens.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

const TOKENS = 100_000;
const ROWS = 40;

describe(`llmp tui, with ${TOKENS} tokens${WITHOUT_TMUX}`, function () {
  this.timeout(120_000);
  let stage: TerminalFixture;
  let terminal: Terminal;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    for (const name of ['web', 'batch', 'notebooks']) await stage.project(name);
    await stage.kill();
    await makeTokens(stage.database, TOKENS);
    await stage.begin();
    terminal = await stage.watch({ columns: 140, rows: ROWS });
    await terminal.shows(/CI job/);
  });
  after(() => (WITHOUT_TMUX ? undefined : stage.close()));

  const first = async (query: string): Promise<WireToken> => {
    const [token] = await stage.manage<WireToken[]>('GET', `/manage/tokens?limit=1&${query}`);
    if (!token) throw new Error('no token');
    return token;
  };
  const cursorOn = ({ id }: WireToken) => new RegExp(`^.?> *${id.slice(0, 8)}`, 'm');
  const total = async (query: string) => {
    const response = await stage.ask(`/manage/tokens?limit=1&${query}`);
    return Number(response.headers.get('x-total-count')).toLocaleString('en');
  };

  it('shows the total', async () => {
    await terminal.shows(new RegExp(`1 of ${await total('')}`));
    expect(await total('')).to.equal('100,000');
  });

  it('jumps to the last one, and back to the first', async () => {
    await terminal.press('G');
    await terminal.shows(cursorOn(await first('sort=-live')));
    await terminal.shows(/100,000 of 100,000/);
    await terminal.press('k', 'C-u', 'C-u');
    await terminal.press('g');
    await terminal.shows(cursorOn(await first('sort=live')));
  });

  it('moves page by page, without a gap', async () => {
    const rows = await stage.manage<WireToken[]>('GET', '/manage/tokens?limit=1000&sort=live');
    for (let page = 0; page < 12; page++) await terminal.press('C-d');
    // A page is the visible rows minus two.
    const index = 12 * (ROWS - 7 - 2);
    await terminal.shows(`${index + 1} of 100,000`);
    await terminal.shows(cursorOn(rows[index]!));
    for (const { id } of rows.slice(index - 20, index)) expect(await terminal.screen()).to.contain(id.slice(0, 8));
    await terminal.press('g');
  });

  it('sorts by the next column, and in reverse', async () => {
    await terminal.press('s');
    await terminal.shows(cursorOn(await first('sort=-created_at')));
    await terminal.press('S');
    await terminal.shows(cursorOn(await first('sort=created_at')));
    await terminal.press('G');
    await terminal.shows(cursorOn(await first('sort=-created_at')));
    for (const key of ['s', 's', 's', 's']) await terminal.press(key);
    await terminal.shows(cursorOn(await first('sort=expires_at')));
    await terminal.shows(/EXPIRES ▲/);
    await terminal.press('s');
    await terminal.shows(/SPENT ▼/);
    await terminal.press('s');
    await terminal.shows(cursorOn(await first('sort=live')));
  });

  it('filters, and shows the number of matches', async () => {
    await terminal.press('/');
    await terminal.type('job 9999 state:active project:web');
    await terminal.press('Enter');
    const projects = await stage.manage<{ id: string; name: string }[]>('GET', '/manage/projects');
    const web = projects.find(({ name }) => name === 'web')?.id ?? '';
    const count = await total(`words=job 9999&state=active&project_id=${web}`);
    await terminal.shows(new RegExp(`filter ${count}/100,?000`));
    await terminal.press('Escape');
    await terminal.shows(/1 of 100,000/);
  });

  it('marks all filtered tokens, and asks before it revokes them', async () => {
    await terminal.press('/');
    await terminal.type('"CI job 1234"');
    await terminal.press('Enter');
    const count = Number(await total('q=CI job 1234'));
    await terminal.shows(new RegExp(`1 of ${count}`));
    await terminal.press('C-a');
    await terminal.shows(new RegExp(`marked ${count}|${count} marked`));
    await terminal.press('x');
    await terminal.shows(/Revoke \d+ tokens? in here/);
    await terminal.press('Escape', 'Escape');
  });
});
