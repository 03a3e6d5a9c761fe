/** The documentation: its links, its command blocks, its length and its words. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';

const ROOT = resolve(import.meta.dirname, '../../..');
const AT_TOP = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'];
const PAGES = [
  ...AT_TOP,
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8');

/** A page without its blocks of code, and without code in a line. */
const prose = (page: string) =>
  textOf(page)
    .replace(/^ *```[^]*?^ *```$/gm, '')
    .replace(/`[^`\n]*`/g, '');

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
  const links = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
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

/** Words that readers stumble over, with what to write in their place. */
const UNWANTED: readonly (readonly [word: RegExp, better: string])[] = [
  [/\banew\b/i, 'again'],
  [/\bwhoever\b/i, 'anyone who'],
  [/\b(?:taken|takes?|took) (?:it )?back\b/i, 'revoked, undone'],
  [/\b(?:is|are|were) away\b/i, 'is unreachable'],
  [/\bat most so many\b/i, 'up to'],
  [/\bkept answers?\b/i, 'stored responses'],
  [/\bunless given\b/i, 'by default'],
];

/** Pages whose text is generated from declarations: what stands there is mended there. */
const GENERATED = ['docs/api.md', 'docs/cli.md', 'docs/keys.md', 'docs/settings.md'];
/** The rows of the first build's failure table, which tests quote. */
const QUOTED = ['docs/faults.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'];

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

  it('uses words that readers know', () => {
    const found = PAGES.filter((page) => !GENERATED.includes(page) && !QUOTED.includes(page)).flatMap((page) =>
      UNWANTED.flatMap(([word, better]) =>
        prose(page)
          .split('\n')
          .filter((line) => word.test(line))
          .map((line) => `${page}: "${line.trim().slice(0, 80)}" (better: ${better})`),
      ),
    );
    expect(found).to.deep.equal([]);
  });
});
