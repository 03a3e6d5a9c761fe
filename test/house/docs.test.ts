/** The documentation: its links, its commands, and its length. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import { parse } from '../../cli/parser.js';
import type { Shell } from '../../cli/shell.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');
/** Markdown without its blocks of code, and without code in a line. */
const proseOf = (markdown: string) => markdown.replace(/^ *```[^]*?^ *```$/gm, '').replace(/`[^`\n]*`/g, '');

const AT_TOP = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'];
const PAGES = [
  ...AT_TOP,
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
/** The anchors that a browser finds on a page: those of its headings, by GitHub's rule. */
function anchorsOf(page: string): Set<string> {
  const headings = textOf(page)
    .replace(/^ *```[^]*?^ *```$/gm, '')
    .matchAll(/^#+ (.*)$/gm);
  const anchors = new Set<string>();
  for (const [, heading = ''] of headings) {
    anchors.add(
      heading
        .trim()
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    );
  }
  return anchors;
}

/** What is wrong with the links of a page. */
function brokenLinks(page: string): string[] {
  const links = [...proseOf(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return links
    .filter((target) => !/^https?:/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path));
      if (!existsSync(join(ROOT, file))) return true;
      return anchor !== undefined && statSync(join(ROOT, file)).isFile() && !anchorsOf(file).has(anchor);
    })
    .map((target) => `${page}: ${target}`);
}

/** Each command line of llmp on a page, in blocks of commands and in the text, without what a shell does with it. */
function commandLinesOn(page: string): string[] {
  const text = textOf(page).replaceAll('\\\n', ' ');
  const blocks = [...text.matchAll(/^ *```(?:sh|console)\n([^]*?)^ *```$/gm)].map(([, block = '']) => block).join('\n');
  const inBlocks = [...blocks.matchAll(/(?:^|\$\(|\| |<\()(?:[$] )?(?: *[A-Z_]+=\S* )* *llmp +([^\n]*)/gm)];
  const inText = [...text.replace(/^ *```[^]*?^ *```$/gm, '').matchAll(/`llmp ([^`\n]+)`/g)];
  return [...inBlocks, ...inText].map(([, words = '']) => words.replace(/(?: +#| [|<>&]|\)).*/, '').trim());
}

describe('the documentation', () => {
  it('has no link that leads nowhere', () => {
    expect(PAGES.flatMap(brokenLinks)).to.deep.equal([]);
  });

  it('says of each block of commands whether a test runs it', () => {
    const unmarked = PAGES.filter((page) => page.startsWith('docs/') || page === 'README.md').flatMap((page) =>
      [...textOf(page).matchAll(/^( *)```(?:sh|console|js|python|go|ini)\n/gm)]
        .filter(({ index }) => !/<!-- [a-z][\w ]*(?:: [\w-]+)? -->\s*$/.test(textOf(page).slice(0, index)))
        .map(({ index }) => `${page}:${textOf(page).slice(0, index).split('\n').length}`),
    );
    expect(unmarked).to.deep.equal([]);
  });

  it('has no command line that llmp does not take', async () => {
    const wrong: string[] = [];
    // Generated from the commands, whose examples have a test of their own.
    for (const page of PAGES.filter((name) => name !== 'docs/cli.md')) {
      for (const line of commandLinesOn(page)) {
        const argv = line.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
        const { result } = await parse(argv, { env: {} } as Shell);
        // A sentence may name a command without its arguments, or with a placeholder.
        const why = result.kind === 'failed' ? result.failure.message : '';
        if (/^unknown (?:command|option)(?!.*…)/.test(why)) wrong.push(`${page}: llmp ${line}: ${why}`);
      }
    }
    expect(wrong).to.deep.equal([]);
  });

  it('begins with a README of at most 150 lines', () => {
    expect(textOf('README.md').split('\n').length).to.be.at.most(151);
  });

  it('is reached from its index: every page', () => {
    const index = textOf('docs/README.md');
    const missing = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md')
      .map((page) => relative('docs', page))
      .filter((page) => !page.startsWith('clients/') && !index.includes(`(${page})`));
    expect(missing).to.deep.equal([]);
    const clients = textOf('docs/clients/README.md');
    for (const page of readdirSync(join(ROOT, 'docs/clients'))) {
      if (page !== 'README.md') expect(clients).to.include(`(${page})`);
    }
  });
});
