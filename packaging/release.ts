/**
 * `npm run release`: writes everything that people install into release/, for both architectures. Two releases of one commit have the
 * same bytes, if Node.js, npm, and the tools and libraries of Debian are the same.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { packageRoot } from '../config/package-root.js';
import { type Application, manifestIn, PROGRAM, writeApplication, writeRelocatable } from './application.js';
import { writeDebianPackage } from './deb.js';
import { gzip, run, setTimes, sha256, tar, write } from './files.js';
import { compileNative, nativeIn } from './native.js';
import { installNodeRuntimes, nodeRuntime } from './node-runtime.js';
import { writeImage } from './oci.js';
import { lockFile, sbom } from './sbom.js';
import { stage, stagePackage } from './stage.js';
import { type Target, TARGETS } from './targets.js';

// The modes of files must not depend on the user's umask.
process.umask(0o022);

const ROOT = packageRoot();
const into = resolve(process.argv[2] ?? join(ROOT, 'release'));
const ofCommit = () => run('git', ['log', '-1', '--format=%ct'], { cwd: ROOT }).toString();
const time = Number(process.env.SOURCE_DATE_EPOCH ?? ofCommit());

/** The native module of each target. */
function nativeModules(runtimes: string, work: string): [Target, Buffer][] {
  return TARGETS.map((target) => {
    const headers = join(runtimes, nodeRuntime(target).path);
    const compiled = compileNative(ROOT, target, headers, join(work, `native-${target.arch}`));
    run(`${target.triplet}-strip`, ['--strip-unneeded', compiled]);
    return [target, readFileSync(compiled)];
  });
}

/** The program with Node.js, for any Linux of its architecture with glibc. */
function writeTarball(application: Application, work: string): void {
  const { version } = manifestIn(application.folder);
  const name = `${PROGRAM}-${version}-linux-${application.target.arch}`;
  writeRelocatable(application, join(work, name));
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
  const runtimes = join(work, 'runtimes');
  installNodeRuntimes(runtimes);
  const staged = join(work, 'staged');
  stage(staged);
  // npm gives every file the same time, but keeps modes: those of a build depend on the umask.
  const ofNpm = join(work, 'package');
  stagePackage(ofNpm);
  for (const [target, content] of nativeModules(runtimes, work))
    for (const folder of [staged, ofNpm]) write(nativeIn(folder, target), content);
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', into], { cwd: ofNpm });
  const lock = lockFile();
  const applications = TARGETS.map((target) => writeApplication(staged, target, runtimes, join(work, target.arch)));
  for (const application of applications) {
    writeDebianPackage(application, lock, into, time);
    writeTarball(application, work);
  }
  writeImage(applications, manifestIn(staged), into, time);
  write(join(into, `${PROGRAM}-${manifestIn(staged).version}.cdx.json`), sbom(staged, lock, time));
  writeSums();
  console.log(readFileSync(join(into, 'SHA256SUMS'), 'utf8').trimEnd());
} finally {
  rmSync(work, { recursive: true });
}
