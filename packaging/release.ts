/**
 * `npm run release`: writes everything that people install into release/. Two releases of one commit have the same bytes, if Node.js and
 * the tools of Debian are the same.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { manifestIn, PROGRAM, writeRelocatable } from './application.js';
import { writeDebianPackage } from './deb.js';
import { gzip, run, setTimes, sha256, tar, write } from './files.js';
import { writeImage } from './oci.js';
import { lockFile, sbom } from './sbom.js';
import { stage, stagePackage } from './stage.js';

// The modes of files must not depend on the user's umask.
process.umask(0o022);

const ROOT = packageRoot();
const into = resolve(process.argv[2] ?? join(ROOT, 'release'));
const ofCommit = () => run('git', ['log', '-1', '--format=%ct'], { cwd: ROOT }).toString();
const time = Number(process.env.SOURCE_DATE_EPOCH ?? ofCommit());

/** The program with Node.js, for any Linux of this architecture with glibc. */
function writeTarball(staged: string, work: string): void {
  const { version } = manifestIn(staged);
  const name = `${PROGRAM}-${version}-linux-${process.arch}`;
  writeRelocatable(staged, join(work, name));
  setTimes(join(work, name), time);
  write(join(into, `${name}.tar.gz`), gzip(tar(work, { time, names: [name] })));
}

function writeSums(): void {
  const lines = readdirSync(into)
    .sort()
    .map((name) => `${sha256(readFileSync(join(into, name)))}  ${name}\n`);
  write(join(into, 'SHA256SUMS'), lines.join(''));
}

const work = mkdtempSync(join(tmpdir(), 'llmp-release-'));
try {
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const staged = join(work, 'staged');
  stage(staged);
  const lock = lockFile();
  // npm gives every file the same time, but keeps modes: those of a build depend on the umask.
  const ofNpm = join(work, 'package');
  stagePackage(ofNpm);
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', into], { cwd: ofNpm });
  writeDebianPackage(staged, lock, into, time);
  writeTarball(staged, work);
  writeImage(staged, into, time);
  write(join(into, `${PROGRAM}-${manifestIn(staged).version}.cdx.json`), sbom(staged, lock, time));
  writeSums();
  console.log(readFileSync(join(into, 'SHA256SUMS'), 'utf8').trimEnd());
} finally {
  rmSync(work, { recursive: true });
}
