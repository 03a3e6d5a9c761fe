import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EXIT } from '../../console/failure.js';
import { markdownPages } from '../../cli/manual/markdown.js';
import { manualPages } from '../../cli/manual/pages.js';
import { plainPage } from '../../cli/manual/plain.js';
import { wholeTree } from '../../cli/commands.js';
import { temporaryFolder } from '../support/daemon.js';
import { llmp } from './captured.js';

const FOLDER = resolve(import.meta.dirname, '../../../man');
const files = readdirSync(FOLDER);
const sourceOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

/** The page as groff formats it, without bold and underlining; null without groff. */
function formatted(source: string): { text: string; complaints: string } | null {
  const options = ['-man', '-Tutf8', '-ww', '-P-cbou'];
  const { status, stdout, stderr } = spawnSync('groff', options, { input: source, encoding: 'utf8' });
  if (status === null && !process.env.CI) return null;
  return { text: stdout, complaints: stderr };
}

describe('the manual', () => {
  it('is what `npm run docs` writes', async () => {
    const pages = manualPages(await wholeTree());
    for (const [name, text] of pages) expect(sourceOf(name), name).to.equal(text);
    expect(files).to.have.members([...pages.keys(), 'llmp.7', 'llmp.env.5']);
  });

  it('has a page for each first word of the command line, with every command and option', async () => {
    const pages = manualPages(await wholeTree());
    for (const { path, command } of (await wholeTree()).commands) {
      const [word] = path;
      if (word === undefined) continue;
      const page = pages.get(`llmp-${word}.1`) ?? pages.get(`llmp-${word}.8`);
      expect(page, word).to.include(path.join(' ').replaceAll('-', '\\-'));
      for (const { flags } of Object.values(command.options)) {
        const [long = ''] = /--[\w-]+/.exec(flags) ?? [];
        expect(page, `${path.join(' ')} ${long}`).to.include(long.replaceAll('-', '\\-'));
      }
    }
  });

  it('names every exit code in llmp(1)', () => {
    const codes = [...sourceOf('llmp.1').matchAll(/^\.TP\n\.B (\d+)$/gm)].map(([, code]) => Number(code));
    expect(codes).to.deep.equal(Object.values(EXIT));
  });

  for (const name of files) {
    it(`has ${name} formatted without warnings, and the same text without groff`, function () {
      const page = formatted(sourceOf(name));
      if (!page) return this.skip();
      expect(page.complaints).to.equal('');
      expect(page.text).not.to.match(/\\\[|\\\(/);
      const words = (text: string) => text.trim().split('\n').slice(1).join(' ').split(/\s+/).join(' ');
      // groff repeats the title below the text.
      const [, body] = /^([\s\S]*)\n.*\n$/.exec(page.text) ?? [];
      expect(words(plainPage(sourceOf(name), 80))).to.equal(words(body ?? ''));
    });
  }
});

describe('the pages on commands and keys in docs/', () => {
  for (const name of ['cli.md', 'keys.md']) {
    it(`have ${name} as \`npm run docs\` writes it`, async () => {
      const text = (await markdownPages()).get(name);
      expect(readFileSync(join(FOLDER, '../docs', name), 'utf8')).to.equal(text);
    });
  }
});

describe('llmp man', () => {
  /** A PATH that contains only this man program. */
  function withMan(script: string): NodeJS.ProcessEnv {
    const folder = join(temporaryFolder(), 'bin');
    mkdirSync(folder);
    writeFileSync(join(folder, 'man'), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, 'man'), 0o700);
    return { PATH: folder };
  }
  const withoutMan = () => ({ PATH: temporaryFolder() });

  it('shows a page through man', async () => {
    const { exitCode, out } = await llmp('man token', { env: withMan('echo "formatted $*"') });
    expect(exitCode).to.equal(0);
    expect(out).to.equal(`formatted ${join(FOLDER, 'llmp-token.1')}\n`);
  });

  for (const [words, title] of [
    ['man', 'LLMP(1)'],
    ['man 7', 'LLMP(7)'],
    ['man env', 'LLMP.ENV(5)'],
    ['man llmp.env', 'LLMP.ENV(5)'],
    ['man llmp(7)', 'LLMP(7)'],
    ['man llmp-token.1', 'LLMP-TOKEN(1)'],
    ['man manage token list', 'LLMP-TOKEN(1)'],
    ['man serve', 'LLMP-DAEMON(8)'],
  ] as const) {
    it(`shows ${title} for \`llmp ${words}\`, also without man`, async () => {
      const { exitCode, out, err } = await llmp(words, { env: withoutMan() });
      expect({ exitCode, err }).to.deep.equal({ exitCode: 0, err: '' });
      expect(out.split('\n')[0]).to.equal(title);
      expect(out)
        .to.contain('\nNAME\n')
        .and.not.to.match(/\\f|^\./m);
    });
  }

  it('uses plain text when man fails', async () => {
    const { out } = await llmp('man token', { env: withMan('echo broken; exit 3') });
    expect(out).to.match(/^LLMP-TOKEN\(1\)\n/);
  });

  it('uses a pager only on a terminal', async () => {
    const shown: unknown[] = [];
    const page = (pager: unknown, text: string) => Promise.resolve(shown.push(pager, text) > 0);
    const env = { PATH: `${withMan('exit 3').PATH ?? ''}:/bin:/usr/bin`, PAGER: 'more' };
    expect((await llmp('man token', { env, page, terminal: 100 })).out).to.equal('');
    expect(shown[0]).to.deep.equal({ command: 'more' });
    expect(shown[1]).to.match(/^LLMP-TOKEN\(1\)\n/);
    expect((await llmp('man token', { env, page })).out).to.match(/^LLMP-TOKEN\(1\)\n/);
    const without = await llmp('man token', { env, page: () => Promise.resolve(false), terminal: 100 });
    expect(without.out).to.match(/^LLMP-TOKEN\(1\)\n/);
  });

  it('exits with 2 for an unknown page, and suggests one', async () => {
    const { exitCode, err } = await llmp('man tokn');
    expect(exitCode).to.equal(2);
    expect(err).to.contain('Did you mean token?').and.to.contain('env');
  });
});
