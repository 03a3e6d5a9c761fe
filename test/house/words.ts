/** Words that readers stumble over, and where people read: documentation, strings of the program, and comments. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';

export const ROOT = resolve(import.meta.dirname, '../../..');

/** Each word with what to write in its place. */
export const UNWANTED: readonly (readonly [word: RegExp, better: string])[] = [
  [/\banew\b/i, 'again'],
  [/\bwhoever\b/i, 'anyone who, the caller'],
  [/\b(?:taken|takes?|took) (?:it |them )?back\b/i, 'revoked, undone, rolled back'],
  [/\bat most so many\b/i, 'up to'],
  [/\bunless given\b/i, 'by default'],
  [/\bkept\b/i, 'stored, cached'],
  [/\b(?:is|are|was|were|be|been|being|stays?|goes|went) away\b/i, 'is unreachable'],
  // Something may be behind a proxy. Nothing else is: it comes after.
  [
    /\bbehind\b(?! (?:(?:a|an|the|its|your|another|this|that) )?(?:\w+ )?(?:proxy|proxies|nginx|HAProxy|Caddy|load balancer|firewall|NAT|TLS))/i,
    'after',
  ],
];

/** @returns what is wrong with a text, for people. */
export function unwantedIn(text: string): string[] {
  return UNWANTED.flatMap(([word, better]) => {
    const found = word.exec(text);
    if (!found) return [];
    const around = text.slice(Math.max(0, found.index - 40), found.index + found[0].length + 40);
    return [`"${found[0]}" in "${around.replace(/\s+/g, ' ').trim()}" (better: ${better})`];
  });
}

/** Names of files below some folders that end like this, relative to the root. */
export function filesBelow(folders: readonly string[], ending: RegExp): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => ending.test(name))
      .map((name) => join(folder, name)),
  );
}

export const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** Markdown without its blocks of code, and without code in a line. */
export const proseOf = (markdown: string) => markdown.replace(/^ *```[^]*?^ *```$/gm, '').replace(/`[^`\n]*`/g, '');

/** A piece of a source file that people read. */
export interface Phrase {
  line: number;
  text: string;
}

/** What people read in a source file: strings that have several words, texts of pages, and comments. */
export function phrasesIn(name: string, source: string): { strings: Phrase[]; comments: Phrase[] } {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest);
  const lineOf = (at: number) => file.getLineAndCharacterOfPosition(at).line + 1;
  const strings: Phrase[] = [];
  const comments = new Map<number, Phrase>();
  const visit = (node: ts.Node) => {
    const isPart = ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    const isText = ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isJsxText(node);
    // A string of one word is for programs: a state, a name. A part of a template has its other words beside it.
    if ((isPart && /\s/.test(node.text)) || (isText && /\S\s+\S/.test(node.text)))
      strings.push({ line: lineOf(node.end), text: node.text });
    for (const { pos, end } of [
      ...(ts.getLeadingCommentRanges(source, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(source, node.end) ?? []),
    ]) {
      if (!comments.has(pos)) comments.set(pos, { line: lineOf(pos), text: source.slice(pos, end) });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { strings, comments: [...comments.values()] };
}
