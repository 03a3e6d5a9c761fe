import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EXIT } from '../../console/failure.js';
import type { Command } from '../../cli/command.js';
import { GLOBAL_OPTIONS } from '../../cli/globals.js';
import { helpOf } from '../../cli/help/help.js';
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

const longOf = (text: string): string[] => text.match(/(?<![\w-])--[a-z][\w-]*/g) ?? [];

/** Without what a page adds to make a sentence of it. */
const phrase = (text: string) =>
  `${text.charAt(0).toLowerCase()}${text.slice(1)}`.replace(/\.$/, '').replaceAll('`', '');

/** A page has placeholders in italics instead of brackets. */
const bare = (term: string) => term.replaceAll(/[<>]/g, '');

type Entry = [term: string, text: string];

/** Terms and their texts, which can take several lines. */
function entriesIn(lines: readonly string[], term: RegExp): Entry[] {
  const entries: Entry[] = [];
  for (const line of lines) {
    const [, named, text = ''] = term.exec(line) ?? [];
    const last = entries.at(-1);
    if (named !== undefined) entries.push([named, text]);
    else if (last) last[1] = `${last[1]} ${line.trim()}`.trim();
  }
  return entries.flatMap(([named, text]) => (text === '' ? [] : [[bare(named), phrase(text)]]));
}

const inHelp = (help: string): Entry[] =>
  help
    .split('\n\n')
    .filter((section) => /^(?:Arguments|Options|Global options):/.test(section))
    .flatMap((section) => entriesIn(section.split('\n').slice(1), /^ {2}(?: {4})?(\S.*?)(?: {2,}(\S.*))?$/));

/** The terms of a section of a page: the paragraphs between them have no text. */
function inPage(page: string, title: string): Entry[] {
  const lines = page.split('\n');
  const at = lines.findIndex((line) => line.replace(/^ {3}/, '') === title);
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => /^(?: {3})?\S/.test(line));
  return entriesIn(rest.slice(0, end), /^ {7}(\S.*)$/);
}

describe('the manual', () => {
  it('is what `npm run docs` writes', async () => {
    const pages = manualPages(await wholeTree());
    for (const [name, text] of pages) expect(sourceOf(name), name).to.equal(text);
    expect(files).to.have.members([...pages.keys(), 'llmp.7', 'llmp.env.5']);
  });

  it('has the usage, argument, options and defaults of each command as its help has them, and no others', async () => {
    const tree = await wholeTree();
    const pages = manualPages(tree);
    const ofAll = { path: [], command: { options: GLOBAL_OPTIONS } };
    for (const { path, command } of [ofAll, ...tree.commands.filter(({ path }) => path.length > 0)]) {
      const [word] = path;
      const page = plainPage(
        pages.get(`llmp${word === undefined ? '' : `-${word}`}.1`) ?? pages.get(`llmp-${word}.8`)!,
        80,
      );
      const help = helpOf(tree, path, 100);
      const usage = /^Usage: (llmp .*?)(?:;|$)/m.exec(help)?.[1] ?? '';
      expect(page.split('\n'), usage).to.include(`       ${usage}`);
      const { argument, options } = command as Command;
      const declared = [
        ...(argument ? [[argument.name, argument.meaning] as const] : []),
        ...Object.values(options).map(({ flags, meaning }) => [flags, meaning] as const),
      ].map(([term, text]) => [bare(term), phrase(text)]);
      expect(inHelp(help), usage).to.deep.equal(declared);
      expect(inPage(page, path.length > 1 ? usage : 'OPTIONS'), usage).to.deep.equal(declared);
    }
  });

  it('names no option that no command has', async () => {
    const ofDatabases = ['--format', '--clean', '--if-exists', '--single-transaction'];
    const all = [GLOBAL_OPTIONS, ...(await wholeTree()).commands.map(({ command }) => command.options)];
    const flags = all.flatMap((options) => Object.values<{ flags: string }>(options)).map((option) => option.flags);
    const known = [...ofDatabases, ...longOf(flags.join(' '))];
    for (const name of files) {
      const unknown = longOf(plainPage(sourceOf(name), 80)).filter((option) => !known.includes(option));
      expect(unknown, name).to.deep.equal([]);
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
