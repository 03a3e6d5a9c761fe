/** The Debian package: `llmp_VERSION_ARCHITECTURE.deb`. */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { shippedFiles } from '../config/systemd/shipped.js';
import {
  type Application,
  APPLICATION,
  binariesIn,
  manifestIn,
  PROGRAM,
  SCRIPT,
  writeInstalled,
} from './application.js';
import { copyright } from './copyright.js';
import { entriesBelow, gzip, run, setTimes, textIn, write } from './files.js';
import { dependenciesOf } from './libraries.js';
import type { LockFile } from './sbom.js';

/** The files that the package is made with: scripts of the maintainer, and a configuration file. */
const SOURCES = join(packageRoot(), 'packaging/debian');

/** There is no address yet that answers. The domain `invalid` is reserved (RFC 2606). */
const MAINTAINER = 'llmp authors <llmp@packages.invalid>';

/** Configuration files: dpkg keeps an operator's changes when it upgrades, and asks if both have changed. */
const CONFFILES = ['/etc/llmp/llmp.env', '/etc/logrotate.d/llmp'];

/**
 * systemd has both programs. In a container without systemd, small packages have them. The binaries' libraries are found by
 * dpkg-shlibdeps.
 */
const DEPENDS = ['systemd-standalone-sysusers | systemd-sysusers', 'systemd-standalone-tmpfiles | systemd-tmpfiles'];

const SUGGESTS = ['logrotate', 'man-db', 'postgresql | mariadb-server', 'redis-server', 'nginx | haproxy'];

const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/llmp',
  zsh: 'usr/share/zsh/vendor-completions/_llmp',
  fish: 'usr/share/fish/vendor_completions.d/llmp.fish',
};

/**
 * @param into the folder for the package. @param time of the release, in seconds since 1970.
 * @returns the path of the package.
 */
export function writeDebianPackage(application: Application, lock: LockFile, into: string, time: number): string {
  const { folder, target } = application;
  const root = mkdtempSync(join(tmpdir(), 'llmp-deb-'));
  try {
    writeInstalled(application, root);
    writeUnits(root);
    writeConfiguration(root);
    writeManual(folder, root);
    for (const [shell, path] of Object.entries(COMPLETIONS)) write(join(root, path), completionFor(root, shell));
    writeDocumentation(folder, lock, root, time);
    setPrivateModes(root);
    writeControl(application, root);
    setTimes(root, time);
    const path = join(into, `${PROGRAM}_${manifestIn(folder).version}_${target.debianArch}.deb`);
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(time) };
    run('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', root, path], { env });
    return path;
  } finally {
    rmSync(root, { recursive: true });
  }
}

function writeUnits(root: string): void {
  const places: Record<string, string> = { '.sysusers': 'sysusers.d', '.tmpfiles': 'tmpfiles.d' };
  for (const [name, text] of shippedFiles()) {
    const folder = Object.entries(places).find(([ending]) => name.endsWith(ending))?.[1];
    write(join(root, 'usr/lib', folder === undefined ? `systemd/system/${name}` : `${folder}/llmp.conf`), text);
  }
}

function writeConfiguration(root: string): void {
  write(join(root, 'etc/llmp/llmp.env'), textIn(SOURCES, 'llmp.env'));
  write(join(root, 'etc/logrotate.d/llmp'), textIn(packageRoot(), 'config/logrotate/llmp'));
}

function writeManual(staged: string, root: string): void {
  for (const path of manifestIn(staged).man) {
    const section = path.slice(-1);
    write(join(root, `usr/share/man/man${section}/${basename(path)}.gz`), gzip(textIn(staged, path)));
  }
}

const completionFor = (root: string, shell: string) =>
  run(process.execPath, [join(root, APPLICATION, SCRIPT), 'completion', shell]);

function writeDocumentation(staged: string, lock: LockFile, root: string, time: number): void {
  const { version } = manifestIn(staged);
  const folder = join(root, 'usr/share/doc', PROGRAM);
  write(join(folder, 'copyright'), copyright(staged, lock));
  const date = new Date(time * 1000).toUTCString().replace('GMT', '+0000');
  const change = `${PROGRAM} (${version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n -- ${MAINTAINER}  ${date}\n`;
  write(join(folder, 'changelog.gz'), gzip(change));
  write(join(folder, 'CHANGELOG.md.gz'), gzip(textIn(staged, 'CHANGELOG.md')));
  for (const example of ['llmp.env.example', 'compose', 'grafana', 'haproxy', 'kubernetes', 'nginx']) {
    copyText(join(staged, 'config', example), join(folder, 'examples', example));
  }
  write(join(root, 'usr/share/lintian/overrides', PROGRAM), textIn(SOURCES, 'lintian-overrides'));
}

function copyText(from: string, to: string): void {
  if (!existsSync(from)) return;
  if (!lstatSync(from).isDirectory()) write(to, readFileSync(from));
  else for (const name of readdirSync(from)) copyText(join(from, name), join(to, name));
}

/** The modes that llmp.tmpfiles sets as well, so that the settings are never readable by everyone, and 0755 for other folders. */
function setPrivateModes(root: string): void {
  for (const { entry, path } of entriesBelow(root)) if (entry.isDirectory()) chmodSync(path, 0o755);
  chmodSync(root, 0o755);
  chmodSync(join(root, 'etc/llmp'), 0o750);
  chmodSync(join(root, 'etc/llmp/llmp.env'), 0o640);
}

function writeControl(application: Application, root: string): void {
  const files = entriesBelow(root).filter(({ entry }) => entry.isFile());
  const sums = files.map(({ path }) => {
    const sum = createHash('md5').update(readFileSync(path)).digest('hex');
    return `${sum}  ${relative(root, path)}\n`;
  });
  const control = join(root, 'DEBIAN');
  const text = controlFile(application, root);
  write(join(control, 'control'), text);
  write(join(control, 'md5sums'), sums.join(''));
  write(join(control, 'conffiles'), CONFFILES.map((path) => `${path}\n`).join(''));
  for (const script of ['postinst', 'prerm', 'postrm']) write(join(control, script), textIn(SOURCES, script), 0o755);
  chmodSync(control, 0o755);
}

function controlFile({ folder, target, packages }: Application, root: string): string {
  const { version, description } = manifestIn(folder);
  const fields = {
    Package: PROGRAM,
    Version: version,
    Architecture: target.debianArch,
    Maintainer: MAINTAINER,
    'Installed-Size': String(installedSize(root)),
    Depends: [...dependenciesOf(binariesIn(folder), target, packages), ...DEPENDS].join(', '),
    Suggests: SUGGESTS.join(', '),
    Section: 'net',
    Priority: 'optional',
    Description: `${synopsis(description)}\n${extended(introduction())}`,
  };
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`);
  return lines.join('');
}

/** In KiB, as dpkg counts: each file in whole KiB, and one for everything else. */
function installedSize(root: string): number {
  const sizes = entriesBelow(root).map(({ entry, path }) =>
    entry.isFile() ? Math.ceil(lstatSync(path).size / 1024) : 1,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The part of the description before its colon, as Debian writes it: in lower case. */
const synopsis = (description: string) =>
  description.replace(/:.*/, '').replace(/^[A-Z]/, (first) => first.toLowerCase());

/** The two paragraphs after the title of the README. */
function introduction(): string[] {
  const [, ...paragraphs] = textIn(packageRoot(), 'README.md').split('\n\n');
  return paragraphs.slice(0, 2).map((text) => text.replaceAll(/\s+/g, ' ').replaceAll(/[_*`]/g, ''));
}

/** The description of several lines in a control file: each line has a space before it. */
function extended(paragraphs: readonly string[]): string {
  return paragraphs.map((text) => text.replaceAll(/(.{1,78})(?: |$)/g, ' $1\n').trimEnd()).join('\n .\n');
}
