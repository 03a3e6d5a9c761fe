/** Manual pages in roff, by the macros of man(7). */

/** @param source where the page is written from, for whoever would change it. */
export const heading = (name: string, section: number, source: string) => [
  `.\\" Written by npm run docs from ${source}.`,
  `.TH ${name.toUpperCase()} ${section} "" "llmp" "llmp"`,
  '.nh', // A name divided at the end of a line could not be copied.
  '.ad l',
];

export const chapter = (title: string, texts: readonly string[]) => [`.SH ${title}`, ...paragraphs(texts)];
export const paragraphs = (texts: readonly string[]) => texts.flatMap((text) => ['.PP', roff(text)]);
export const entries = (list: readonly (readonly [term: string, text: string])[]) =>
  list.flatMap(([term, text]) => ['.TP', `.B ${roff(term)}`, roff(text)]);

/** Lines as they are, such as commands to paste. */
export const literal = (lines: readonly string[]) => ['.PP', '.RS 4', '.nf', ...lines.map(roffAsIs), '.fi', '.RE'];

/** Text for groff: `words in backquotes` in bold, nothing taken for a request, nothing beyond ASCII. */
export function roff(text: string): string {
  const parts = text.split(/`([^`]*)`/);
  return firstSafe(parts.map((part, at) => (at % 2 === 1 ? `\\fB${escaped(part)}\\fR` : escaped(part))).join(''));
}

const roffAsIs = (line: string) => firstSafe(escaped(line));

/** A dot at the beginning would be a request; an apostrophe is escaped anyhow. */
const firstSafe = (line: string) => line.replace(/^\./, '\\&.');

/** Signs that groff shows as others, so that what is copied from a page would not be what was written. */
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
