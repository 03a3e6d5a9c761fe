/** Writes manual pages in roff with the macros of man(7). */

/** @param source the source of the page, named in a comment for people who want to change it. */
export const heading = (name: string, section: number, source: string) => [
  `.\\" Written by npm run docs from ${source}.`,
  `.TH ${name.toUpperCase()} ${section} "" "llmp" "llmp"`,
  '.nh', // No hyphenation: a hyphenated name could not be copied.
  '.ad l',
];

export const chapter = (title: string, texts: readonly string[]) => [`.SH ${title}`, ...paragraphs(texts)];
export const paragraphs = (texts: readonly string[]) => texts.flatMap((text) => ['.PP', roff(text)]);
export const entries = (list: readonly (readonly [term: string, text: string])[]) =>
  list.flatMap(([term, text]) => ['.TP', `.B ${roff(term)}`, roff(text)]);

/** Preformatted lines, such as commands to copy. */
export const literal = (lines: readonly string[]) => ['.PP', '.RS 4', '.nf', ...lines.map(roffAsIs), '.fi', '.RE'];

/** Text for groff: `words in backquotes` in bold, no accidental requests, ASCII only. */
export function roff(text: string): string {
  const parts = text.split(/`([^`]*)`/);
  return firstSafe(parts.map((part, at) => (at % 2 === 1 ? `\\fB${escaped(part)}\\fR` : escaped(part))).join(''));
}

const roffAsIs = (line: string) => firstSafe(escaped(line));

/** Protects a leading dot, which would start a request. A leading apostrophe would as well, but it is always escaped. */
const firstSafe = (line: string) => line.replace(/^\./, '\\&.');

/** Characters that groff replaces by typographic ones, so that copied text would not work. */
const SIGNS: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
};

function escaped(text: string): string {
  return text
    .replace(/[\\'`^~-]/g, (sign) => SIGNS[sign] ?? sign)
    .replace(
      /[^\x20-\x7e]/gu,
      (letter) => `\\[u${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}
