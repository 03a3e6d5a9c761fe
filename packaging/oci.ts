/**
 * The container image for all targets, as an archive with an OCI image layout: `llmp-VERSION-oci.tar`. No daemon is needed: the layers are
 * archives of folders. It contains Node.js, the libraries that it needs, and llmp; no shell, and no package manager.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LLMP } from '../config/systemd/shipped.js';
import { type Application, APPLICATION, manifestIn, NODE, PROGRAM, writeInstalled } from './application.js';
import { gzip, sha256, tar, write } from './files.js';
import type { Target } from './targets.js';

/** The user of the container, as images without a shell usually number it. */
const USER = 65_532;
const DATA = 'data';

const TYPE = 'application/vnd.oci.image';
const MANIFEST = `${TYPE}.manifest.v1+json`;
const INDEX = `${TYPE}.index.v1+json`;

interface Layer {
  /** What it contains, for the history. */
  what: string;
  content: Buffer;
}

interface Blob {
  mediaType: string;
  digest: string;
  size: number;
}

type Manifest = ReturnType<typeof manifestIn>;

/** @returns the path of the archive. */
export function writeImage(
  applications: readonly Application[],
  manifest: Manifest,
  into: string,
  time: number,
): string {
  const work = mkdtempSync(join(tmpdir(), 'llmp-oci-'));
  try {
    const layout = join(work, 'layout');
    const images = applications.map((application) => ({
      ...writePlatform(application, layout, folderIn(work, application.target.arch), time),
      platform: { architecture: application.target.debianArch, os: 'linux' },
    }));
    // The archive names one index, and that the image of each platform: a tool then takes the one of its machine.
    const index = writeBlob(layout, INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: images });
    const annotations = {
      'org.opencontainers.image.ref.name': manifest.version,
      // The name after `docker load` and `podman load`, so that both find `llmp:VERSION`.
      'io.containerd.image.name': `docker.io/library/${PROGRAM}:${manifest.version}`,
    };
    const named = { ...index, annotations };
    write(join(layout, 'index.json'), json({ schemaVersion: 2, mediaType: INDEX, manifests: [named] }));
    write(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
    const path = join(into, `${PROGRAM}-${manifest.version}-oci.tar`);
    write(path, tar(layout, { time }));
    return path;
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Writes the image for one platform. @param work an empty folder. */
function writePlatform(application: Application, layout: string, work: string, time: number): Blob {
  const manifest = manifestIn(application.folder);
  const libraries = join(work, 'libraries');
  cpSync(application.libraries, libraries, { recursive: true, verbatimSymlinks: true });
  writeAccounts(libraries);
  const program = folderIn(work, 'program');
  writeInstalled(application, program);
  const data = folderIn(work, 'data');
  mkdirSync(join(data, DATA), { mode: 0o700 });
  const layers: Layer[] = [
    { what: 'the libraries of Node.js', content: tar(libraries, { time }) },
    { what: `Node.js and llmp ${manifest.version}`, content: tar(program, { time }) },
    { what: 'the folder for data', content: tar(data, { time, names: [DATA], owner: USER }) },
  ];
  const created = new Date(time * 1000).toISOString();
  return writeBlob(layout, MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: writeBlob(layout, `${TYPE}.config.v1+json`, configOf(layers, application.target, created)),
    layers: layers.map(({ content }) => writeBlob(layout, `${TYPE}.layer.v1.tar+gzip`, gzip(content))),
    annotations: annotationsOf(manifest, created),
  });
}

/** @param content an object is written as JSON. */
function writeBlob(layout: string, mediaType: string, content: object): Blob {
  const bytes = Buffer.isBuffer(content) ? content : json(content);
  const digest = sha256(bytes);
  write(join(layout, 'blobs/sha256', digest), bytes);
  return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
}

function folderIn(work: string, name: string): string {
  mkdirSync(join(work, name));
  return join(work, name);
}

const PASSWD = `root:x:0:0:root:/root:/nonexistent
llmp:x:${USER}:${USER}:llmp:/${DATA}:/nonexistent
`;
const GROUP = `root:x:0:\nllmp:x:${USER}:\n`;
/** How names of hosts are resolved: without this file, glibc does not ask /etc/hosts first. */
const NSSWITCH = 'passwd: files\ngroup: files\nhosts: files dns\n';

/** Files that the libraries read. */
function writeAccounts(root: string): void {
  write(join(root, 'etc/passwd'), PASSWD);
  write(join(root, 'etc/group'), GROUP);
  write(join(root, 'etc/nsswitch.conf'), NSSWITCH);
}

function annotationsOf({ version, description, license }: Manifest, created: string) {
  const values = { created, title: PROGRAM, version, description, licenses: license };
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [`org.opencontainers.image.${key}`, value]));
}

/** The daemon writes to /data only: the file system of the container can be read-only. */
function configOf(layers: readonly Layer[], { debianArch }: Target, created: string) {
  return {
    created,
    architecture: debianArch,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '8080/tcp': {} },
      // Outside of the container nobody reaches an address of its loopback interface. The folder `data` is below the working directory.
      Env: ['PATH=/usr/bin', `HOME=/${DATA}`, 'NODE_ENV=production', 'LISTEN_ADDR=:8080'],
      Entrypoint: [`/${APPLICATION}/${NODE}`, '--', LLMP],
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
