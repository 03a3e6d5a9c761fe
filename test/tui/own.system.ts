/** The terminal UI as its operator has set it up, in a real terminal: keys, colors, views, columns, history and the mouse. */
import { expect } from 'chai';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject } from '../../daemon/api/contract.js';
import { eventually } from '../support/eventually.js';
import { type Terminal, type TerminalModes, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture, type Watching } from './terminal-fixture.js';

describe(`llmp tui, set up by its operator${WITHOUT_TMUX}`, function () {
  this.timeout(60_000);
  let stage: TerminalFixture;
  let web: WireProject;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    web = await stage.project('web');
    for (const [at, name] of ['alpha', 'beta', 'ci-one', 'ci-two'].entries()) await stage.token(web.id, name, at + 1);
  });
  after(() => (WITHOUT_TMUX ? undefined : stage.close()));
  beforeEach(() => {
    if (WITHOUT_TMUX) return;
    for (const name of ['keys.toml', 'theme.toml', 'views.toml']) write(name, '');
  });

  const write = (name: string, text: string) => {
    writeFileSync(join(stage.folder, name), text, { mode: 0o600 });
  };
  const read = (name: string) => readFileSync(join(stage.folder, name), 'utf8');

  async function started(more: Watching = {}): Promise<Terminal> {
    const it = await stage.watch(more);
    await it.shows(/ci-two/);
    await it.shows(/live/);
    return it;
  }
  async function quit(it: Terminal): Promise<TerminalModes> {
    await it.press('q');
    expect(await it.exit()).to.equal(0);
    return it.modes();
  }
  const command = async (it: Terminal, text: string) => {
    await it.type(`:${text}`);
    await it.press('Enter');
  };

  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    const size = { columns, rows };

    it(`takes the keys of keys.toml, and the colors of theme.toml, at ${columns}x${rows}`, async () => {
      write('keys.toml', '[tokens]\nrevoke = "F3"\n');
      write('theme.toml', 'skin = "light"\n[colors]\nkey = "#010203"\n');
      const it = await stage.watch({ ...size, env: { COLORTERM: 'truecolor' } });
      const recorded = await it.record();
      await it.press('C-l');
      await it.shows(/ f3 revoke/);
      await it.shows(/ci-two/);
      await it.shows(/live/);
      await eventually('the colors are there', async () => (await recorded()).includes('\x1b[38;2;1;2;3m'));
      await it.press('F3');
      await it.shows(/Revoke alpha/);
      await it.press('Escape');
      await quit(it);
    });

    it(`stores a view, its columns and the history for the next start, at ${columns}x${rows}`, async () => {
      const it = await started(size);
      await command(it, 'tokens ci project:web');
      await it.shows(/ 2\/4 *$/m);
      await it.press('s', 's');
      await command(it, 'save leaks');
      await it.shows(/Saved the view leaks/);
      await it.shows(/8 leaks 2/);
      await it.press('C', 'Space', 'Enter');
      await it.shows(/Saved the columns of the view leaks/);
      await quit(it);
      expect(read('views.toml')).to.contain('filter = "ci project:web"').and.to.contain('sort = "-last_used_at"');
      expect(statSync(join(stage.folder, 'views.toml')).mode & 0o777).to.equal(0o600);

      const next = await started(size);
      await next.shows(/8 leaks 2/);
      await next.press('8');
      const shown = await next.shows(/ 2\/4 *\n[^]*│ +NAME +/);
      expect(shown).not.to.match(/│ +ID +/);
      await next.press(':', 'Up');
      await next.shows(/: save leaks/);
      await next.press('Up');
      await next.shows(/: tokens ci project:web/);
      await next.press('Escape');
      await quit(next);
    });

    it(`selects and opens with the mouse, only with --mouse, at ${columns}x${rows}`, async () => {
      const plain = await started(size);
      expect((await plain.modes()).hasMouse).to.equal(false);
      await quit(plain);

      const it = await started({ ...size, args: ['--mouse'] });
      expect((await it.modes()).hasMouse).to.equal(true);
      const click = (column: number, row: number) => it.type(`\x1b[<0;${column};${row}M\x1b[<0;${column};${row}m`);
      await click(20, 7);
      await it.shows(/^.> .*ci-one/m);
      await click(20, 7);
      await it.shows(/tokens › ci-one/);
      await it.press('q');
      await click(20, 5);
      await it.shows(/^.> .*alpha/m);
      await it.type('\x1b[<65;20;7M');
      await it.shows(/^.> .*ci-two/m);
      expect((await quit(it)).hasMouse).to.equal(false);
    });
  }

  for (const [how, end, code] of [
    ['^C', (it: Terminal) => it.press('C-c'), 130],
    ['SIGTERM', (it: Terminal) => it.signal('SIGTERM'), 143],
    ['SIGHUP', (it: Terminal) => it.signal('SIGHUP'), 129],
  ] as const) {
    it(`turns the mouse off at ${how}`, async () => {
      const it = await started({ args: ['--mouse'] });
      await end(it);
      expect(await it.exit()).to.equal(code);
      expect((await it.modes()).hasMouse).to.equal(false);
    });
  }

  it('starts with mistakes in its files, and shows them first', async () => {
    write('keys.toml', '[tokens]\nrevok = "d"\nreactivate = "f2"\n');
    write('theme.toml', 'skin = "ligth"\n');
    write('views.toml', '[[contexts.here.views]\n');
    const it = await stage.watch({ columns: 120, rows: 40 });
    const shown = (await it.shows(/Your settings/)).replace(/[\s│]+/g, ' ');
    expect(shown).to.contain('keys.toml, line 2: there is no action "revok" in [tokens]; did you mean revoke?');
    expect(shown).to.contain('theme.toml, line 1: there is no skin "ligth"; did you mean light?');
    expect(shown).to.contain('views.toml is not valid (line 1)');
    await it.press('Enter');
    await it.shows(/x revoke .* f2 reactivate/);
    await command(it, 'save x');
    await it.shows(/Cannot store it, so it ends with llmp/);
    await quit(it);
    expect(read('views.toml')).to.equal('[[contexts.here.views]\n');
  });

  it('changes the skin until the end', async () => {
    const it = await started({ env: { COLORTERM: 'truecolor' } });
    const recorded = await it.record();
    await command(it, 'skin light');
    await eventually('it is light', async () => (await recorded()).includes('\x1b[38;2;17;99;41m'));
    await command(it, 'skin nne');
    await it.shows(/there is no skin "nne"; did you mean none\?/);
    await it.press('Escape');
    await quit(it);
  });
});
