/** The whole program in a real terminal: keys pressed by an operator, and the resulting screens. */
import { expect } from 'chai';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { WireProject, WireTokenCreated } from '../../daemon/api/contract.js';
import { MAIN } from '../cli/processes.js';
import { eventually } from '../support/eventually.js';
import { permit } from '../support/leaks.js';
import { type Terminal, WITHOUT_TMUX } from '../support/tmux.js';
import { TerminalFixture } from './terminal-fixture.js';

const LIVE = /live/;

const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];

describe(`llmp tui, in a real terminal${WITHOUT_TMUX}`, function () {
  this.timeout(60_000);
  let stage: TerminalFixture;
  let web: WireProject;

  before(async function () {
    if (WITHOUT_TMUX) this.skip();
    stage = await TerminalFixture.open();
    web = await stage.project('web');
    await stage.project('batch');
    // In the order of the list: the first one expires next.
    for (const [at, name] of NAMES.entries()) await stage.token(web.id, name, at + 1);
  });
  after(() => (WITHOUT_TMUX ? undefined : stage.close()));

  // A test that fails halfway must not leave its changes to the next ones.
  afterEach(async () => {
    if (WITHOUT_TMUX) return;
    for (const name of NAMES) {
      const { id, is_active } = await stage.tokenNamed(name);
      if (!is_active) await stage.manage('PATCH', `/manage/tokens/${id}`, { is_active: true });
    }
  });

  /** Opens the loaded list of tokens. */
  async function onTokens(
    args: readonly string[] = [],
    more: { columns?: number; rows?: number } = {},
  ): Promise<Terminal> {
    const it = await stage.watch({ args, ...more });
    await it.shows(/epsilon/);
    await it.shows(LIVE);
    return it;
  }
  const cursorOn = (name: string) => new RegExp(`^.?>.*${name}`, 'm');
  const isActive = async (name: string) => (await stage.tokenNamed(name)).is_active;

  describe('browsing', () => {
    it('starts with the tokens, those that expire next on top, and moves down and up', async () => {
      const it = await onTokens();
      await it.shows(cursorOn('alpha'));
      await it.press('j', 'j');
      await it.shows(cursorOn('gamma'));
      await it.press('k');
      await it.shows(cursorOn('beta'));
      await it.press('G');
      await it.shows(cursorOn('epsilon'));
      await it.press('g');
      await it.shows(cursorOn('alpha'));
    });

    it('opens each screen by number, and in a circle with tab', async () => {
      const it = await onTokens();
      for (const [key, seen] of [
        ['1', /requests/i],
        ['3', cursorOn('batch')],
        ['4', /token\.create/],
        ['5', /backend|off/i],
        ['6', /events/i],
        ['7', /last hour/],
      ] as const) {
        await it.press(key);
        await it.shows(seen);
      }
      await it.press('Tab', 'Tab');
      await it.shows(cursorOn('alpha'));
    });

    it('opens a token, shows its audit records, and goes back', async () => {
      const it = await onTokens();
      await it.press('j', 'Enter');
      const { id } = await stage.tokenNamed('beta');
      const seen = await it.shows(id);
      expect(seen).to.match(/tokens › beta/);
      await it.shows(/token\.create/);
      await it.shows(`token get ${id}`);
      await it.press('h');
      await it.shows(cursorOn('beta'));
    });

    it('shows changes made elsewhere', async () => {
      const it = await onTokens();
      await it.press('4');
      await it.shows(/token\.create/);
      const { id } = await stage.token(web.id, 'newcomer', 200);
      await it.shows(/token\.create.*newcomer/);
      await stage.manage('DELETE', `/manage/tokens/${id}`);
      await it.shows(/token\.revoke/);
    });

    it('shows why a request failed, in three keys, and keeps it while others come', async () => {
      const body = { project_id: web.id, name: 'caller', duration_hours: 300 };
      const { token } = await stage.manage<WireTokenCreated>('POST', '/manage/tokens', body);
      const call = (path: string) =>
        fetch(stage.server + path, { headers: { authorization: `Bearer ${token}` } }).then((it) => it.status);
      for (const [columns, rows] of [
        [80, 24],
        [120, 40],
        [200, 60],
      ] as const) {
        const it = await onTokens([], { columns, rows });
        expect(await call(`/v1/first-${columns}`)).to.equal(502);
        await it.press('6', 'e', 'Enter');
        await it.shows(new RegExp(`request +502 GET /v1/first-${columns}`));
        await it.shows(/502 +provider unreachable +caller/);
        await it.shows(/why +upstream unreachable \(ECONNREFUSED\)/);
        await it.shows(/remedy +check the base URL of the project/);
        await it.shows(/of +caller {2}in web/);
        for (let n = 0; n < 30; n++) await call(`/v1/later-${n}`);
        await it.shows(/30 new below/);
        expect(await it.shows(/▲|✗ 502/)).to.match(new RegExp(`request +502 GET /v1/first-${columns}`));
      }
    });

    it('shows help, and runs the selected key', async () => {
      const it = await onTokens();
      await it.press('?');
      await it.shows(/show the token/);
      await it.press('Enter');
      await it.shows((await stage.tokenNamed('alpha')).id);
      await it.press('q');
      await it.shows(cursorOn('alpha'));
      await it.press(':');
      await it.type('reverse');
      await it.press('Enter');
      await it.shows(/usable last, by expiry/);
    });
  });

  describe('filtering', () => {
    it('filters while typing, with totals of the daemon, and restores the previous filter with escape', async () => {
      const it = await onTokens();
      await it.press('/');
      await it.type('project:web delt');
      await it.shows(/1 of 1/);
      expect(await it.screen())
        .to.contain('delta')
        .and.not.contain('alpha');
      await it.press('Enter');
      await it.shows(/ 1\/\d+ *$/m);
      await it.press('Escape');
      await it.shows(/alpha/);
    });

    it('reports an invalid filter', async () => {
      const it = await onTokens();
      await it.press('/');
      await it.type('state:sleeping');
      await it.press('Enter');
      await it.shows(/sleeping.*(?:active|revoked)|(?:active|revoked)/);
      expect(await it.screen()).to.contain('alpha');
    });

    it('opens the tokens of a project', async () => {
      const it = await onTokens();
      await it.press('3');
      await it.shows(cursorOn('batch'));
      await it.press('j', 'Enter');
      await it.shows(/projects › .*web/);
      await it.shows(/epsilon/);
      await it.press('q');
      await it.shows(cursorOn('web'));
    });
  });

  describe('changing', () => {
    it('revokes after a dialog that starts on Cancel, undoes it, and reactivates', async () => {
      const it = await onTokens();
      await it.press('x');
      await it.shows(/Revoke alpha in here/);
      await it.press('Enter');
      await it.shows(cursorOn('alpha'));
      expect(await isActive('alpha'), 'Enter alone cancels').to.equal(true);
      await it.press('x', 'Tab', 'Enter');
      await it.shows(/Revoked alpha.*undo/);
      expect(await isActive('alpha')).to.equal(false);
      await it.shows(/alpha.*revoked/);
      await it.press('u');
      await it.shows(/Reactivated alpha/);
      expect(await isActive('alpha')).to.equal(true);
      await it.shows(/alpha.*active/);
      await it.press('x', 'Tab', 'Enter');
      await it.shows(/Revoked alpha/);
      await it.shows(/alpha.*✗ revoked/);
      await it.press('a');
      await it.shows(/Reactivated alpha/);
      await it.shows(/alpha.*active/);
      const [record] = await stage.audit('token.reactivate');
      expect(record).to.include({ actor: 'tui', outcome: 'success' });
    });

    it('revokes marked tokens with a reason', async () => {
      const it = await onTokens();
      await it.press('j', 'Space', 'Space');
      await it.shows(/marked 2|2 marked/);
      await it.press('x');
      await it.shows(/Revoke 2 tokens in here/);
      await it.press('BTab');
      await it.type('leaked in a log');
      await it.press('Enter', 'Enter');
      await it.shows(/Revoked 2 tokens/);
      expect([await isActive('beta'), await isActive('gamma'), await isActive('delta')]).to.deep.equal([
        false,
        false,
        true,
      ]);
      const [record] = await stage.audit('token.revoke');
      expect(record?.reason).to.equal('leaked in a log');
      await it.press('u');
      await it.shows(/Reactivated 2 tokens/);
    });

    it('requires typing the project in a protected context', async () => {
      const it = await onTokens(['-c', 'guarded']);
      await it.shows(/PROTECTED/);
      await it.press('x');
      await it.shows(/Type web to confirm/);
      await it.press('Tab', 'Enter');
      await it.shows(/Type web to confirm/);
      expect(await isActive('alpha')).to.equal(true);
      await it.press('Escape');
      await it.shows(cursorOn('alpha'));
    });

    it('changes nothing in a read-only context', async () => {
      const it = await onTokens(['-c', 'shown']);
      await it.press('x');
      await it.shows(/read-only/);
      await it.press('n');
      await it.press('a');
      expect(await it.screen()).to.match(cursorOn('alpha'));
      const other = await onTokens(['--readonly']);
      await other.press('x');
      await other.shows(/read-only/);
    });

    it('creates, renames and deactivates a project', async () => {
      const it = await onTokens();
      await it.press('3', 'n');
      await it.shows(/New project/);
      await it.type('night');
      await it.press('Tab', 'Tab', 'Tab');
      await it.typeSecret('sk-a-key-of-the-provider');
      await it.press('Enter', 'Enter');
      // There is no provider.
      await it.shows(/the provider did not respond to the check/);
      await it.press('Space', 'Enter', 'Enter');
      await it.shows(/Created project night/);
      expect(await it.screen(true)).not.to.contain('a-key-of-the');
      await it.shows(/night +●/); // In the list, not only in the message.
      await it.press('j');
      await it.shows(cursorOn('night'));
      await it.press('d', 'Tab', 'Enter');
      await it.shows(/Deactivated night/);
      await it.shows(/night +◌/); // The list is refreshed: until then the project still counts as active.
      await it.press('a');
      await it.shows(/Activated night/);
    });
  });

  describe('new token', () => {
    it('shows its secret only in the dialog that reveals it, once', async () => {
      const it = await onTokens();
      const recorded = await it.record();
      await it.press('n');
      await it.shows(/New token/);
      await it.press('Tab');
      await it.type('created-here');
      await it.press('Tab');
      await it.press('C-u');
      await it.type('72h');
      await it.press('Enter', 'Enter', 'Enter');
      await it.shows(/shown once/);
      expect(await it.screen(true)).not.to.match(/sk-wt-[A-Za-z0-9]{10}/);
      // Written to a file before it is revealed.
      await it.press('w');
      await it.press('C-u');
      await it.type(join(stage.folder, 'token.txt'));
      await it.press('Enter');
      await it.shows(/Written to/);
      const path = join(stage.folder, 'token.txt');
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      const secret = readFileSync(path, 'utf8').trim();
      expect(secret).to.match(/^sk-wt-[A-Za-z0-9]{49}$/);
      expect(await recorded(), 'in all that was written so far').not.to.contain(secret);

      permit(/terminal$|^stdout of tmux$/, ['token'], 'it is revealed');
      await it.press('v');
      await it.shows(secret);
      await it.press('v');
      await eventually('it is hidden again', async () => !(await it.screen()).includes(secret));
      await it.press('q', 'Escape');
      await it.shows(/shown once/);
      await it.press('Enter');
      await eventually('it is closed', async () => !(await it.screen()).includes('shown once'));
      await it.shows(/created-here/);
      expect(await it.screen(true), 'the scrollback as well').not.to.contain(secret);
      await it.press('q');
      expect(await it.exit()).to.equal(0);
      expect(await it.screen(true), 'after the end').not.to.contain(secret);
    });
  });

  describe('names', () => {
    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [200, 60],
    ] as const) {
      it(`stay whole when another column is shown, at ${columns}x${rows}`, async () => {
        const name = `regression-of-eu-west-${columns}`;
        await stage.token(web.id, name, 500);
        const it = await onTokens(['-c', 'shown'], { columns, rows });
        await it.shows(`${name} `);
        await it.press('C');
        await it.shows(/\[ \] used/);
        await it.press('r', ...Array.from({ length: 11 }, () => 'j'), 'Space', 'Enter');
        await it.shows(/Saved the columns of tokens/);
        expect(await it.screen()).to.contain(`${name} `);
        await it.press('C', 'r', 'Enter');
      });
    }
  });

  describe('the token of a secret', () => {
    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [200, 60],
    ] as const) {
      it(`is found by the secret, which stays off the screen, and by what is shown of it, at ${columns}x${rows}`, async () => {
        const name = `leaked-${columns}`;
        const body = { project_id: web.id, name, duration_hours: 400 };
        const { token } = await stage.manage<WireTokenCreated>('POST', '/manage/tokens', body);
        const { obfuscated } = await stage.tokenNamed(name);
        const it = await onTokens([], { columns, rows });
        const recorded = await it.record();
        await it.press('/');
        await it.paste(token);
        await it.shows(`tokens › ${name}`);
        await it.press('h');
        await it.shows(/epsilon/);
        await it.press('/');
        await it.type(obfuscated);
        await it.shows(/enter finds its token/);
        await it.press('Enter');
        await it.shows(`tokens › ${name}`);
        expect(await recorded()).not.to.contain(token.slice(10, 30));
      });
    }
  });

  describe('hostile names', () => {
    it('are refused if they could change the terminal, and keep the columns if they are wide', async () => {
      let refusal = '';
      await stage.token(web.id, 'evil\u202etxt', 300).catch((error: unknown) => (refusal = String(error)));
      expect(refusal).to.include('characters that change the writing direction');
      const name = 'evil 漢字 🦊 \u00e9';
      await stage.token(web.id, name, 300);
      const it = await onTokens([], { columns: 160 });
      await it.press('G');
      const seen = await it.shows(/evil/);
      expect(seen).to.contain('漢字');
      const lines = seen.split('\n');
      const [above = '', line = ''] = [
        lines.find((it) => it.includes('epsilon')),
        lines.find((it) => it.includes('evil')),
      ];
      expect(above.indexOf('web')).to.be.greaterThan(0);
      expect(line).to.match(/web +. active/);
      const { id } = await stage.tokenNamed(name);
      await stage.manage('DELETE', `/manage/tokens/${id}`);
    });
  });

  describe('quitting', () => {
    async function isAsBefore(it: Terminal) {
      const { isAlternate, hasCursor, wraps, hasMouse } = await it.modes();
      expect({ isAlternate, hasCursor, wraps, hasMouse }).to.deep.equal({
        isAlternate: false,
        hasCursor: true,
        wraps: true,
        hasMouse: false,
      });
      expect(await it.screen(true), 'nothing of it is left').not.to.contain('alpha');
    }

    it('exits with 0 after q', async () => {
      const it = await onTokens();
      await it.press('q');
      expect(await it.exit()).to.equal(0);
      await isAsBefore(it);
    });

    it('exits with 130 after ^C, also with an open dialog', async () => {
      const it = await onTokens();
      await it.press('x');
      await it.shows(/Revoke alpha/);
      await it.press('C-c');
      await it.shows(cursorOn('alpha'));
      await it.press('C-c');
      expect(await it.exit()).to.equal(130);
      await isAsBefore(it);
    });

    for (const [signal, code] of [
      ['SIGTERM', 143],
      ['SIGHUP', 129],
      ['SIGINT', 130],
    ] as const) {
      it(`exits with ${code} after ${signal}`, async () => {
        const it = await onTokens();
        await it.signal(signal);
        expect(await it.exit()).to.equal(code);
        await isAsBefore(it);
      });
    }

    it('suspends with ^Z, and resumes with fg', async () => {
      const it = await stage.terminal(['bash', '--norc', '--noprofile', '-i'], { env: { PS1: 'shell> ' } });
      await it.shows('shell>');
      await it.type(`'${process.execPath}' -- '${MAIN}' tui`);
      await it.press('Enter');
      await it.shows(/epsilon/);
      await it.press('j', 'C-z');
      await it.shows(/Stopped/);
      expect((await it.modes()).isAlternate).to.equal(false);
      await it.type('echo here we are');
      await it.press('Enter');
      await it.shows(/^here we are/m);
      await it.type('fg');
      await it.press('Enter');
      await it.shows(cursorOn('beta'));
      expect((await it.modes()).isAlternate).to.equal(true);
      await it.press('k');
      await it.shows(cursorOn('alpha'));
    });
  });

  describe('terminal', () => {
    it('can have any size, and be resized at any time', async () => {
      const it = await onTokens();
      for (const [columns, rows] of [
        [1, 1],
        [40, 8],
        [2, 50],
        [200, 60],
        [49, 10],
        [50, 10],
        [300, 100],
        [80, 24],
      ] as const) {
        await it.resize(columns, rows);
      }
      await it.shows(/epsilon/);
      await it.resize(49, 20);
      await it.shows(/50x10/);
      await it.resize(50, 10);
      await it.shows(cursorOn('alpha'));
      expect(await it.scrolled()).to.equal(0);
    });

    it('can be without colours', async () => {
      const it = await stage.watch({ env: { NO_COLOR: '1' } });
      await it.shows(cursorOn('alpha'));
      // Bold and inverse do not count as colours.
      expect(await it.colouredScreen()).not.to.match(/\x1b\[(?:[\d;]*;)?(?:3[0-8]|4[0-8]|9\d|10\d)[;m]/); // eslint-disable-line no-control-regex
    });

    it('can be limited to ASCII', async () => {
      const it = await stage.watch({ env: { LC_ALL: 'C' } });
      await it.shows(cursorOn('alpha'));
      expect(await it.screen()).to.match(/^[\x20-\x7e\n]*$/);
      const asked = await stage.watch({ args: ['--ascii'] });
      await asked.shows(cursorOn('alpha'));
      expect(await asked.screen()).to.match(/^[\x20-\x7e\n]*$/);
    });

    it('can be in CI', async () => {
      const it = await stage.watch({ env: { CI: '1' } });
      await it.shows(cursorOn('alpha'));
      await it.press('j');
      await it.shows(cursorOn('beta'));
    });

    it('must be able to position text', async () => {
      const it = await stage.terminal(['env', 'TERM=dumb', process.execPath, '--', MAIN, 'tui']);
      expect(await it.exit()).to.equal(2);
      expect(await it.screen()).to.contain('--once');
    });

    it('receives only changes', async () => {
      const it = await onTokens();
      const recorded = await it.record();
      await it.press('j', 'k');
      await it.shows(cursorOn('alpha'));
      const bytes = await recorded();
      expect(bytes).not.to.contain('\x1b[2J');
      expect(bytes.length).to.be.below(8_000);
    });
  });

  describe('another daemon', () => {
    it('is selected from the contexts', async () => {
      const it = await onTokens();
      await it.press('c');
      await it.shows(/guarded/);
      await it.press('j', 'Enter');
      await it.shows(/PROTECTED/);
      await it.shows(cursorOn('alpha'));
    });

    it('that refuses the management token is reported, and not retried until the operator does so', async () => {
      const it = await stage.watch({ args: ['-c', 'wrong'] });
      await it.shows(/management token was refused/);
      await it.press('c');
      await it.shows(/guarded/);
      await it.press('Escape');
      await it.press('q');
      expect(await it.exit()).to.equal(0);
    });
  });

  describe('unreachable daemon', () => {
    it('leaves its last data on the screen, receives no changes, and is reconnected', async () => {
      const it = await onTokens();
      await stage.kill();
      // Until then a request may have failed while others succeeded, and changes could still be sent.
      await it.shows(/offline/);
      expect(await it.screen()).to.match(cursorOn('alpha'));
      await it.press('x');
      await it.shows(/offline: cannot send changes/);
      await stage.begin();
      await it.shows(LIVE, 30_000);
      await it.press('x', 'Tab', 'Enter');
      await it.shows(/Revoked alpha/);
      await it.press('u');
      await it.shows(/Reactivated alpha/);
    });
  });
});
