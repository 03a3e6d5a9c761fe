/**
 * The container image, as an archive with an OCI image layout: `llmp-VERSION-oci-ARCHITECTURE.tar`. No daemon is needed: the layers are
 * archives of folders. It contains Node.js, the libraries that it needs, and llmp; no shell, and no package manager.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_FLAGS } from '../config/node-flags.js';
import { LLMP } from '../config/systemd/shipped.js';
import { APPLICATION, manifestIn, NODE, PROGRAM, writeInstalled } from './application.js';
import { entriesBelow, gzip, run, setModes, sha256, tar, write } from './files.js';

/** The user of the container, as images without a shell usually number it. */
const USER = 65_532;
const DATA = 'data';

const TYPE = 'application/vnd.oci.image';

interface Layer {
  /** What it contains, for the history. */
  what: string;
  content: Buffer;
}

interface Blob {
  digest: string;
  size: number;
}

/** @param staged the folder of the npm package with its production dependencies. @returns the path of the archive. */
export function writeImage(staged: string, into: string, time: number): string {
  const work = mkdtempSync(join(tmpdir(), 'llmp-oci-'));
  try {
    const { version } = manifestIn(staged);
    const layout = join(work, 'layout');
    const program = folderIn(work, 'program');
    writeInstalled(staged, program);
    const layers: Layer[] = [
      { what: 'the libraries of Node.js', content: tar(librariesIn(folderIn(work, 'libraries'), program), { time }) },
      { what: `Node.js and llmp ${version}`, content: tar(program, { time }) },
      {
        what: 'the folder for data',
        content: tar(dataIn(folderIn(work, 'data')), { time, names: [DATA], owner: USER }),
      },
    ];
    writeLayout(layout, layers, manifestIn(staged), time);
    const path = join(into, `${PROGRAM}-${version}-oci-${ociArchitecture()}.tar`);
    write(path, tar(layout, { time }));
    return path;
  } finally {
    rmSync(work, { recursive: true });
  }
}

function folderIn(work: string, name: string): string {
  mkdirSync(join(work, name));
  return join(work, name);
}

/** The names of Node.js and OCI for the architecture. */
const ociArchitecture = () =>
  (({ x64: 'amd64', ia32: '386' }) as Partial<Record<NodeJS.Architecture, string>>)[process.arch] ?? process.arch;

const PASSWD = `root:x:0:0:root:/root:/nonexistent
llmp:x:${USER}:${USER}:llmp:/${DATA}:/nonexistent
`;
const GROUP = `root:x:0:\nllmp:x:${USER}:\n`;
/** How names of hosts are resolved: without this file, glibc does not ask /etc/hosts first. */
const NSSWITCH = 'passwd: files\ngroup: files\nhosts: files dns\n';

/** Writes the libraries that the binaries of a tree need, and the files that they read. @returns the folder. */
function librariesIn(root: string, program: string): string {
  // As in Debian, /lib and /lib64 are links.
  for (const name of ['lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  const binaries = entriesBelow(program).filter(({ entry, path }) => entry.isFile() && isBinary(path));
  const libraries = new Set(binaries.flatMap(({ path }) => librariesOf(path)));
  for (const library of [...libraries].sort()) {
    write(join(root, 'usr', library.replace(/^\/usr\//, '/')), readFileSync(library), 0o755);
    const license = licenseOf(library);
    if (license) write(join(root, license), readFileSync(license));
  }
  write(join(root, 'etc/passwd'), PASSWD);
  write(join(root, 'etc/group'), GROUP);
  write(join(root, 'etc/nsswitch.conf'), NSSWITCH);
  const programs = entriesBelow(join(root, 'usr')).map(({ path }) => path);
  setModes(
    root,
    programs.filter((path) => path.includes('.so')),
  );
  return root;
}

const isBinary = (path: string) => path.endsWith('.node') || path.endsWith(`/${APPLICATION}/${NODE}`);

/** The paths of the libraries that a binary loads, and of its loader. */
function librariesOf(binary: string): string[] {
  const lines = run('ldd', [binary]).toString().split('\n');
  return lines.flatMap((line) => /(?:=> |^\s*)(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

/** Debian's file about the copyright of a library. */
function licenseOf(library: string): string | undefined {
  const paths = [library, realpathSync(library), library.replace(/^\/lib/, '/usr/lib')];
  for (const path of [...paths, ...paths.map((each) => each.replace(/^\/usr\/lib/, '/lib'))]) {
    try {
      const owner = run('dpkg', ['-S', path]).toString().split(':')[0] ?? '';
      const file = `/usr/share/doc/${owner}/copyright`;
      if (existsSync(file)) return file;
    } catch {
      continue; // dpkg knows it by another of its paths.
    }
  }
  return undefined;
}

function dataIn(root: string): string {
  mkdirSync(join(root, DATA), { mode: 0o700 });
  return root;
}

function writeLayout(
  layout: string,
  layers: readonly Layer[],
  manifest: ReturnType<typeof manifestIn>,
  time: number,
): void {
  const created = new Date(time * 1000).toISOString();
  const blob = (content: Buffer): Blob => {
    const digest = sha256(content);
    write(join(layout, 'blobs/sha256', digest), content);
    return { digest: `sha256:${digest}`, size: content.length };
  };
  const config = blob(json(configOf(layers, created)));
  const image = blob(
    json({
      schemaVersion: 2,
      mediaType: `${TYPE}.manifest.v1+json`,
      config: { mediaType: `${TYPE}.config.v1+json`, ...config },
      layers: layers.map(({ content }) => ({ mediaType: `${TYPE}.layer.v1.tar+gzip`, ...blob(gzip(content)) })),
      annotations: annotationsOf(manifest, created),
    }),
  );
  const named = { 'org.opencontainers.image.ref.name': manifest.version };
  const manifests = [{ mediaType: `${TYPE}.manifest.v1+json`, ...image, annotations: named }];
  write(join(layout, 'index.json'), json({ schemaVersion: 2, mediaType: `${TYPE}.index.v1+json`, manifests }));
  write(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
}

function annotationsOf({ version, description, license }: ReturnType<typeof manifestIn>, created: string) {
  const values = { created, title: PROGRAM, version, description, licenses: license };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [`org.opencontainers.image.${key}`, value]));
}

/** The daemon writes to /data only: the file system of the container can be read-only. */
function configOf(layers: readonly Layer[], created: string) {
  return {
    created,
    architecture: ociArchitecture(),
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '8080/tcp': {} },
      // Outside of the container nobody reaches an address of its loopback interface. The folder `data` is below the working directory.
      Env: ['PATH=/usr/bin', `HOME=/${DATA}`, 'NODE_ENV=production', 'LISTEN_ADDR=:8080'],
      Entrypoint: [`/${APPLICATION}/${NODE}`, ...NODE_FLAGS, '--', LLMP],
      Cmd: ['daemon'],
      Volumes: { [`/${DATA}`]: {} },
      WorkingDir: '/',
      StopSignal: 'SIGTERM',
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ content }) => `sha256:${sha256(content)}`) },
    history: layers.map(({ what }) => ({ created, created_by: what })),
  };
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
