/** The copyright file of the Debian package: the licenses of llmp, of Node.js, and of every package that is shipped. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { APPLICATION, manifestIn, PROGRAM } from './application.js';
import { textIn } from './files.js';
import { type LockFile, nameAt, shippedPackages } from './sbom.js';

/** Every Debian has these texts, and a package refers to them. */
const COMMON_LICENSES: Readonly<Record<string, string>> = { 'Apache-2.0': '/usr/share/common-licenses/Apache-2.0' };

/** @param staged the folder of the package with its production dependencies. @returns a file in the format of DEP 5. */
export function copyright(staged: string, lock: LockFile): string {
  const { license: ownLicense } = manifestIn(staged);
  const own = textIn(packageRoot(), 'LICENSE');
  const names = new Map<string, string>();
  const packages = shippedPackages(staged, lock).map(({ path, locked, isBundled }) => {
    const license = (locked.license ?? 'unknown').replaceAll(/[()]/g, '').replaceAll(' OR ', ' or ');
    const text = licenseIn(join(packageRoot(), path));
    const isCommon = COMMON_LICENSES[license] !== undefined;
    const name = isCommon ? license : licenseName(names, license, nameAt(path), text);
    return { path, isBundled, license: name, holders: isCommon ? NOT_STATED : holdersIn(text) };
  });
  const bundled = packages.filter((it) => it.isBundled);
  const common = Object.entries(COMMON_LICENSES).filter(([license]) => packages.some((it) => it.license === license));
  const paragraphs = [
    ['Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/', `Upstream-Name: ${PROGRAM}`],
    ['Files: *', `Copyright: ${holdersIn(own)}`, `License: ${ownLicense}`, field(own)],
    [`Files: ${APPLICATION}/bin/*`, 'Copyright: Node.js contributors', 'License: Node.js', field(NODE_LICENSE)],
    [
      `Files: ${APPLICATION}/dist/node_modules/*`,
      `Copyright: ${unique(bundled.map(({ holders }) => holders)).join('\n ')}`,
      `License: ${unique(bundled.map(({ license }) => license)).join(' and ')}`,
    ],
    ...packages
      .filter((it) => !it.isBundled)
      .map(({ path, license, holders }) => [
        `Files: ${APPLICATION}/${path}/*`,
        `Copyright: ${holders}`,
        `License: ${license}`,
      ]),
    ...[...names].map(([text, name]) => [`License: ${name}`, field(text)]),
    ...common.map(([license, path]) => [`License: ${license}`, field(`The text is in ${path}.`)]),
  ];
  return paragraphs.map((lines) => `${lines.join('\n')}\n`).join('\n');
}

const unique = (values: readonly string[]) => [...new Set(values)];

const NOT_STATED = 'the authors of the package';

const NODE_LICENSE = `The licenses of Node.js and of the libraries that it contains are in
/${APPLICATION}/bin/LICENSE.`;

/**
 * The name of a license in the file: a name means one text. Two packages with the same license have different texts, because the holders
 * of their copyrights are in them. @param names of the texts until now; a new one is added.
 */
function licenseName(names: Map<string, string>, license: string, packageName: string, text: string): string {
  if (text === '') return license;
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = `${license.replaceAll(' ', '-')}~${packageName.replace('@', '').replaceAll('/', '-')}`;
  const isTaken = [...names.values()].includes(name);
  names.set(text, isTaken ? `${name}-${names.size}` : name);
  return names.get(text) ?? name;
}

/** The text of the license in the folder of a package; empty if the package states only its name. */
function licenseIn(folder: string): string {
  const name = readdirSync(folder).find((each) => /^(?:licen[cs]e|copying)(?:[.-].*)?$/i.test(each));
  return name === undefined ? '' : textIn(folder, name);
}

/** The lines about the copyright; one that every file needs if the license has none. */
function holdersIn(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/^[\s*#/]+/, '').trim());
  const holders = lines.filter((line) => /^copyright\b.*(?:\d{4}|\(c\)|©)/i.test(line));
  if (holders.length === 0) return NOT_STATED;
  return holders.map((line) => line.replace(/^copyright\s*/i, '')).join('\n ');
}

/** A value of several lines: an empty line is a point. */
const field = (text: string) =>
  text
    .trim()
    .split(/\r?\n/)
    .map((line) => (line.trim() === '' ? ' .' : ` ${line.trim()}`))
    .join('\n');
