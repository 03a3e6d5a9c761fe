/** The files with the operator's settings for the terminal UI: where they are, and what makes them untrusted. */
import { expect } from 'chai';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MANAGEMENT_TOKEN, startDaemon, temporaryFolder, type TestDaemon } from '../support/daemon.js';
import { llmp } from './captured.js';

describe('the settings of the terminal UI', () => {
  let home: string;
  let env: NodeJS.ProcessEnv;

  beforeEach(() => {
    home = temporaryFolder();
    env = { HOME: home };
  });

  function write(path: string, text: string, mode = 0o600): string {
    const whole = join(home, path);
    mkdirSync(dirname(whole), { recursive: true, mode: 0o700 });
    writeFileSync(whole, text);
    chmodSync(whole, mode);
    return whole;
  }
  const KEYS = '[tokens]\nrevoke = "f3"\n';
  const printed = (more: NodeJS.ProcessEnv = {}) => llmp('tui --print-keys', { env: { ...env, ...more } });

  it('are defaults without files, and without a home folder', async () => {
    for (const where of [{}, { HOME: undefined }]) {
      const { exitCode, out, err } = await printed(where);
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      expect(out).to.contain('[tokens]\n').and.to.contain('\n# revoke = ["x"]  # revoke it, or');
    }
  });

  it('are in the folder of the contexts file', async () => {
    for (const [folder, more] of [
      ['.config/llmp', {}],
      ['xdg/llmp', { XDG_CONFIG_HOME: join(home, 'xdg') }],
      ['mine', { LLMP_CONFIG: join(home, 'mine/contexts.toml') }],
    ] as const) {
      expect((await printed(more)).out).not.to.match(/^revoke/m);
      write(`${folder}/keys.toml`, KEYS);
      expect((await printed(more)).out).to.match(/^revoke = \["f3"\]/m);
    }
  });

  it('are not needed: what is wrong is reported, and the rest applies', async () => {
    write('.config/llmp/keys.toml', `${KEYS}nothing = "d"\n`);
    const { exitCode, out, err } = await printed();
    expect(exitCode).to.equal(0);
    expect(out).to.match(/^revoke = \["f3"\]/m);
    expect(err).to.contain('llmp: keys.toml, line 3: there is no action "nothing" in [tokens]');
  });

  const untrusted: readonly (readonly [what: string, act: (path: string) => void, words: string])[] = [
    [
      'can be written by others',
      (path) => {
        chmodSync(path, 0o666);
      },
      'is writable by other users',
    ],
    [
      'are in a folder that others can write',
      (path) => {
        chmodSync(dirname(path), 0o777);
      },
      'is writable by other users',
    ],
    [
      'are larger than 256 KiB',
      (path) => {
        writeFileSync(path, '#'.repeat(257 * 1024));
      },
      'is larger than 256 KiB',
    ],
  ];
  for (const [what, act, words] of untrusted) {
    it(`are not used if they ${what}`, async () => {
      act(write('.config/llmp/keys.toml', KEYS));
      const { exitCode, out, err } = await printed();
      expect(exitCode).to.equal(0);
      expect(out).not.to.match(/^revoke/m);
      expect(err).to.contain(words);
    });
  }

  it('are not used if they belong to another user', async function () {
    if (process.getuid?.() !== 0) this.skip(); // Only root can change the owner of a file.
    chownSync(write('.config/llmp/keys.toml', KEYS), 65_534, 65_534);
    const { out, err } = await printed();
    expect(out).not.to.match(/^revoke/m);
    expect(err).to.contain('belongs to another user').and.to.contain('could change what your keys do');
  });

  it('are the keys on the manual page', async () => {
    const page = () => llmp('man tui', { env: { ...env, PATH: temporaryFolder() } });
    expect((await page()).out).to.match(/These are the default keys\.[^]*\n +x\n +Revoke it, or the marked/);
    write('.config/llmp/keys.toml', `${KEYS}range = []\n`);
    const { out, err, exitCode } = await page();
    expect({ err, exitCode }).to.deep.equal({ err: '', exitCode: 0 });
    expect(out)
      .to.match(/^LLMP-TUI\(1\)\n/)
      .and.to.match(/These are your keys[^]*\n +f3\n +Revoke it, or the marked/);
    expect(out).not.to.contain('Mark a range');
    expect(out).to.contain('\nCOMMAND LINE\n').and.to.contain('\nFILES\n');
  });

  describe('in one frame', () => {
    let daemon: TestDaemon;
    before(async () => {
      daemon = await startDaemon();
    });
    after(() => daemon.stop());

    const frame = (more: NodeJS.ProcessEnv = {}) => {
      const connection = { LLMP_SERVER: daemon.url, MANAGEMENT_TOKEN, TERM: 'xterm', LANG: 'C.UTF-8' };
      return llmp('tui --once', { env: { ...env, ...connection, ...more }, terminal: 100 });
    };

    it('are the keys in the footer, and the colors of the terminal', async () => {
      write('.config/llmp/keys.toml', KEYS);
      write('.config/llmp/theme.toml', 'skin = "light"\n[colors]\nkey = "#010203"\n');
      const { out, err } = await frame({ COLORTERM: 'truecolor' });
      expect(err).to.equal('');
      expect(out).to.contain('f3').and.to.contain('\x1b[38;2;1;2;3m');
      expect((await frame({ COLORTERM: 'truecolor', NO_COLOR: '1' })).out).not.to.contain('38;2');
    });

    it('are reported on standard error, without the notice in the frame', async () => {
      write('.config/llmp/theme.toml', 'skin = "dark"\n');
      const { exitCode, out, err } = await frame();
      expect(exitCode).to.equal(0);
      expect(err).to.contain('llmp: theme.toml, line 1: there is no skin "dark"; the skins are default, light');
      expect(out).to.contain('Tokens').and.not.to.contain('theme.toml');
    });
  });
});
