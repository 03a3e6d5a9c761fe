import { expect } from 'chai';
import { filesBelow, type Phrase, phrasesIn, proseOf, textOf, unwantedIn } from './words.js';

const PROGRAM = ['config', 'console', 'cli', 'tui', 'daemon', 'migrations'];

/** Phrases that may stand although they have such a word, and why. */
const ALLOWED: readonly (readonly [phrase: RegExp, why: string])[] = [
  [/\b(?:left|leaves?)(?: [\w ]+)? behind\b/, 'to leave something behind is plain English'],
  [/\b(?:lags|further|look-)\W?behind\b/, 'and so is to lag behind; a look-behind is a part of a regular expression'],
];

const isAllowed = (text: string) => ALLOWED.some(([phrase]) => phrase.test(text));

const PAGES = [
  ...filesBelow(['docs', 'man'], /\.(?:md|[1-8])$/),
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'config/llmp.env.example',
];

/** What stands in a text, with the line that it is on. */
const inLines = (file: string, text: string) =>
  text
    .split('\n')
    .flatMap((line, at) => (isAllowed(line) ? [] : unwantedIn(line).map((it) => `${file}:${at + 1}: ${it}`)));

const inPhrase = (file: string, { line, text }: Phrase) =>
  isAllowed(text) ? [] : unwantedIn(text).map((it) => `${file}:${line}: ${it}`);

describe('words that readers stumble over', () => {
  it('are found in strings, templates, pages and comments', () => {
    const source = 'const a = `done ${1} anew`; // whoever\nconst b = <p>is away today</p>;';
    const { strings, comments } = phrasesIn('a.tsx', source);
    expect(strings.flatMap(({ text }) => unwantedIn(text))).to.have.length(2);
    expect(comments.flatMap(({ text }) => unwantedIn(text))).to.have.length(1);
    expect(unwantedIn('is behind nginx')).to.deep.equal([]);
    expect(unwantedIn('what comes behind it')).to.have.length(1);
  });

  it('stand in no page of the documentation', () => {
    expect(
      PAGES.flatMap((page) => inLines(page, page.endsWith('.md') ? proseOf(textOf(page)) : textOf(page))),
    ).to.deep.equal([]);
  });

  it('stand in no string and no comment of the program', () => {
    const found = filesBelow(PROGRAM, /\.tsx?$/).flatMap((file) => {
      const { strings, comments } = phrasesIn(file, textOf(file));
      return [...strings, ...comments].flatMap((phrase) => inPhrase(file, phrase));
    });
    expect(found).to.deep.equal([]);
  });

  it('stand in no panel or alert of Grafana, and in no unit or example', () => {
    const files = filesBelow(['config'], /\.(?:json|ya?ml|service|conf|cfg|example)$/);
    expect(files.flatMap((file) => inLines(file, textOf(file)))).to.deep.equal([]);
  });
});
